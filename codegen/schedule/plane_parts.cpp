#include "codegen/schedule/plane_parts.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "codegen/nest/product.h"
#include "codegen/schedule/loops.h"

namespace bitale {

std::int64_t plane_lanes(DType dtype) {
    constexpr std::int64_t register_bytes = 64, narrowest = 4;
    return register_bytes / std::max<std::int64_t>(narrowest, bytes_of(dtype));
}

bool readable_past_the_end(const KernelBuilder& builder, const ScalarNode& read) {
    const Place& place = builder.ir.places[static_cast<std::size_t>(read.operand.place())];
    return place.scope != Place::Scope::global || !place.written;
}

namespace {

// The loop over planes; null where there is none that several can be taken of.
const Loop* planes_of(const Nest& nest) {
    if (nest.parallel.size() < 3) return nullptr;
    const Loop& l = nest.parallel[nest.parallel.size() - 3];
    const bool used = std::any_of(nest.lets.begin(), nest.lets.end(),
                                  [&](const Let& let) { return varies(nest, let.value, l.variable); });
    return l.variable.symbol_id() && l.extent.is_constant() && !used ? &l : nullptr;
}

}  // namespace

bool choose_planes(const Nest& nest, std::int64_t rows, bool alike,
                   const std::function<std::int64_t(std::int64_t planes, std::int64_t rows)>& bytes,
                   std::int64_t& planes_at_once, std::int64_t& rows_at_once) {
    const Loop* all = alike ? planes_of(nest) : nullptr;
    planes_at_once = 1;
    rows_at_once = rows;
    for (std::int64_t more = all ? all->extent.constant() : 1; more > 1; --more)
        if (all->extent.constant() % more == 0 && bytes(more, rows) <= kept_bytes) {
            planes_at_once = more;
            break;
        }
    while (rows_at_once > 1 && bytes(planes_at_once, rows_at_once) > kept_bytes)
        rows_at_once = (rows_at_once + 1) / 2;
    return bytes(planes_at_once, rows_at_once) <= most_plane_bytes;
}

Stmts over_planes(const Nest& nest, std::int64_t planes_at_once, std::int64_t rows_at_once, std::int64_t rows,
                  const std::function<Stmts(const PlaneBlock&)>& body) {
    Nest around = nest;
    around.guards.clear();
    around.reduced.clear();
    const Loop* planes = planes_at_once > 1 ? planes_of(nest) : nullptr;
    around.parallel.resize(around.parallel.size() - (planes ? 3 : 2));
    LoopBuilder loops(around);
    return loops.nest(around.parallel, [&](LoopBuilder&) {
        if (planes) {
            const Int plane = Int::symbol("planes", {0, planes->extent.constant() - 1});
            return Stmts{loop(plane, 0, planes->extent, Binding::serial,
                              body({plane, planes_at_once, 0, rows}), planes_at_once)};
        }
        if (rows_at_once >= rows) return body({0, 1, 0, rows});
        const Int first = Int::symbol("first", {0, rows - 1});
        const Int count = rows % rows_at_once == 0 ? Int(rows_at_once) : min(rows_at_once, rows - first);
        return Stmts{loop(first, 0, rows, Binding::serial, body({0, 1, first, count}), rows_at_once)};
    });
}

Stmts in_planes(const Nest& nest, const PlaneBlock& block, const Int& plane, Stmts body) {
    if (!plane.symbol_id()) return body;
    const Int& variable = planes_of(nest)->variable;
    return {loop(plane, 0, block.planes, Binding::serial,
                 substitute(body, {{variable.symbol_id(), block.plane + plane}}))};
}

}  // namespace bitale
