#include "codegen/schedule/looked_up_rows.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "codegen/nest/walk.h"
#include "codegen/schedule/member.h"

namespace bitale {

bool looks_up_rows(const Nest& nest, const Int& lanes, const ShapeOf& shape_of) {
    std::vector<Int> found;
    for (const Let& l : nest.lets)
        if (depends_on(l.value, lanes.symbol_id())) found.push_back(l.symbol);
    bool any = false;
    if (found.empty()) return any;
    for_each_read(nest.body, [&](const ScalarNode& s) {
        const bool looked_up = std::any_of(found.begin(), found.end(), [&](const Int& place) {
            return std::any_of(s.at.begin(), s.at.end(),
                               [&](const Int& x) { return depends_on(x, place.symbol_id()); });
        });
        const Int offset = offset_of(s, shape_of);
        any =
            any || (looked_up && std::any_of(nest.parallel.begin(), nest.parallel.end(), [&](const Loop& l) {
                        const std::optional<Int> step = stride_of(offset, l.variable);
                        return l.variable.symbol_id() != lanes.symbol_id() && step && step->is(1);
                    }));
    });
    return any;
}

std::vector<Loop> in_order_of_lanes(const Nest& nest, const ShapeOf& shape_of) {
    std::vector<Loop> loops = nest.parallel;
    if (loops.size() < 2 || !looks_up_rows(nest, loops.back().variable, shape_of)) return loops;
    const int lanes = vector_loop(nest, shape_of);
    if (lanes >= 0) std::rotate(loops.begin() + lanes, loops.begin() + lanes + 1, loops.end());
    return loops;
}

Stmts in_lanes_of_results(const std::vector<Loop>& results, Stmts body, LoopBuilder& loops) {
    const std::uint64_t lane = results.empty() ? 0 : results.back().variable.symbol_id();
    const auto own = std::find_if(body.begin(), body.end(), [&](const Stmt& s) {
        return s.kind != Stmt::Kind::let || depends_on(s.value, lane) || depends_on(s.end, lane);
    });
    if (!lane || own == body.begin())
        return loops.nest(
            results, [&](LoopBuilder&) { return body; }, Binding::simd);
    Stmts inside(std::make_move_iterator(own), std::make_move_iterator(body.end()));
    body.erase(own, body.end());
    body.push_back(loop(results.back().variable, 0, results.back().extent, Binding::simd, std::move(inside)));
    return loops.nest({results.begin(), results.end() - 1}, [&](LoopBuilder&) { return body; });
}

}  // namespace bitale
