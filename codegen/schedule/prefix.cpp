#include "codegen/schedule/prefix.h"

#include <algorithm>

#include "codegen/group/values.h"
#include "codegen/nest/prefix.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

// As many chains of operations as hide the time of one.
constexpr std::int64_t side_by_side = 8;

}  // namespace

std::int64_t rows_of_prefixes(const std::vector<Nest>& nests) {
    const bool any = std::any_of(nests.begin(), nests.end(), [](const Nest& nest) {
        return is_prefix(nest) && nest.parallel.size() > 1;
    });
    return any ? side_by_side : 0;
}

Stmts schedule_prefix(const Member& member, KernelBuilder& builder) {
    const Nest& nest = member.nest;
    const Loop place = nest.parallel.back();
    const DType dtype = accumulator_of(nest);
    std::vector<Loop> rows(nest.parallel.begin(), nest.parallel.end() - 1);
    Loop last{0, 1};
    if (!rows.empty()) {
        last = rows.back();
        rows.pop_back();
    }
    // The element at the place itself, which the next ones get.
    Nest element = nest;
    element.guards.clear();
    element = substitute(element, {{nest.reduced[0].variable.symbol_id(), place.variable}});
    element.parallel = nest.parallel;
    element.reduced.clear();

    const auto walk = [&](const Int& first, std::int64_t count) {
        const Int row = count > 1 ? Int::symbol("row", {0, count - 1}) : Int(0);
        const int running = builder.scratch(Place::Scope::private_, dtype, {Int(count)});
        Substitution here;
        if (const std::uint64_t id = last.variable.symbol_id()) here[id] = first + row;
        const auto each = [&](Stmts body) {
            return count > 1 ? Stmts{loop(row, 0, count, Binding::unrolled, std::move(body))}
                             : std::move(body);
        };
        Nest own = substitute(element, here);
        own.parallel = rows;
        own.parallel.push_back(place);
        if (row.symbol_id()) own.parallel.push_back({row, count});
        LoopBuilder loops(own);
        const Scalar own_value = scalar_cast(dtype, own.body);
        return loops.nest(
            rows,
            [&](LoopBuilder& inner) {
                Stmts body{declare(running)};
                append(body, each({set(running, {row}, neutral(nest.combine, dtype))}));
                append(body, inner.nest(
                                 {place},
                                 [&](LoopBuilder& innermost) {
                                     Stmts step =
                                         substitute(stores(member, scalar_read(dtype, running, {row})), here);
                                     append(step, innermost.guarded(
                                                      {accumulate(running, {row}, nest.combine, own_value)}));
                                     return each(std::move(step));
                                 },
                                 Binding::serial, row));
                return body;
            },
            Binding::serial, row);
    };
    if (!last.variable.symbol_id()) return walk(0, 1);
    const Int whole = floordiv(last.extent, side_by_side) * side_by_side,
              first = Int::symbol("rows", last.variable.range());
    Stmts body;
    if (last.extent.range().high >= side_by_side)
        body.push_back(loop(first, 0, whole, Binding::serial, walk(first, side_by_side), side_by_side));
    if (!(last.extent - whole).is(0)) {
        const Int rest = Int::symbol("rows", last.variable.range());
        body.push_back(loop(rest, whole, last.extent, Binding::serial, walk(rest, 1)));
    }
    return body;
}

}  // namespace bitale
