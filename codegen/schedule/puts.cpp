#include "codegen/schedule/puts.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/nest/puts.h"
#include "codegen/schedule/loops.h"

namespace bitale {

std::optional<RowsOfMember> rows_of_puts(const Nest& nest) {
    constexpr double elements_of_task = 4096;
    if (!adds_at_places(nest)) return {};
    const double row = typical_count({nest.parallel.begin() + 1, nest.parallel.end()});
    return RowsOfMember{
        std::max<std::int64_t>(1, static_cast<std::int64_t>(elements_of_task / std::max(1.0, row))), 1};
}

Stmts schedule_puts(const Member& member) {
    const Nest& nest = member.nest;
    const PutForm form = *put_form(nest, PutRows::of_task);
    const Loop& place = nest.parallel[form.place];
    LoopBuilder clear(nest, false);
    Stmts body = clear.nest(
        nest.parallel, [&](LoopBuilder&) { return stores(member, scalar_integer(accumulator_of(nest), 0)); },
        Binding::simd);

    // One more than the place, so that 0 and what lies behind the last one are outside.
    const Int found = Int::symbol("found", {0, (place.extent + 1).range().high});
    Nest points = nest;
    points.combine = Combine::none;
    points.parallel.erase(points.parallel.begin() + static_cast<std::ptrdiff_t>(form.place));
    points.lets.push_back(
        {found,
         scalar_apply(Opcode::add, DType::int64,
                      {scalar_cast(DType::int64, form.key), scalar_integer(DType::int64, 1)}),
         place.extent + 2});
    points.guards = {{found, 1, place.extent + 1}};
    points.body = form.value;
    const auto behind = points.parallel.begin() + static_cast<std::ptrdiff_t>(form.place);
    const std::vector<Loop> rows(points.parallel.begin(), behind), columns(behind, points.parallel.end());
    const Substitution here{{place.variable.symbol_id(), found - 1}};
    LoopBuilder loops(points);
    append(body, loops.nest(rows, [&](LoopBuilder& row) {
        return row.nest(nest.reduced, [&](LoopBuilder& point) {
            return point.nest(
                columns,
                [&](LoopBuilder& innermost) {
                    Stmts added;
                    for (const Destination& d : member.destinations) {
                        std::vector<Int> at = d.at;
                        for (Int& x : at) x = substitute(x, here);
                        added.push_back(accumulate(d.place, at, nest.combine, points.body));
                    }
                    return innermost.guarded(std::move(added));
                },
                Binding::simd);
        });
    }));
    return body;
}

}  // namespace bitale
