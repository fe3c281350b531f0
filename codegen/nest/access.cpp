#include "codegen/nest/access.h"

#include <algorithm>
#include <cstddef>

#include "codegen/nest/walk.h"

namespace bitale {

Int offset_of(const ScalarNode& read, const ShapeOf& shape_of) {
    if (read.at.empty()) return 0;
    const Shape& shape = shape_of(read.operand);
    Int offset = 0;
    for (std::size_t d = 0; d < read.at.size(); ++d) offset = offset * shape[d] + read.at[d];
    return offset;
}

std::optional<Int> stride_of(const Int& x, const Int& variable) {
    const std::uint64_t id = variable.symbol_id();
    if (!id) return Int(0);
    Int step = substitute(x, {{id, variable + 1}}) - x;
    if (depends_on(step, id)) return {};
    return step;
}

int unit_stride_reads(const Nest& nest, const Int& variable, const ShapeOf&) {
    const std::uint64_t id = variable.symbol_id();
    if (!id) return 0;
    int n = 0;
    for_each_read(nest, [&](const ScalarNode& s) {
        if (s.at.empty()) return;
        const Int step = substitute(s.at.back(), {{id, variable + 1}}) - s.at.back();
        const bool others =
            std::any_of(s.at.begin(), s.at.end() - 1, [&](const Int& x) { return depends_on(x, id); });
        n += step.is(1) && !others;
    });
    return n;
}

bool unit_stride(const Nest& nest, const Int& variable, const ShapeOf& shape_of) {
    return unit_stride_reads(nest, variable, shape_of) > 0;
}

}  // namespace bitale
