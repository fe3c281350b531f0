#include "codegen/schedule/turned_finish.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "codegen/schedule/pointwise.h"

namespace bitale {

namespace {

constexpr std::int64_t turned_height = 16, fewest_turned = 16, most_turned = 1024;

Shape rows_of(const Nest& nest) {
    Shape shape;
    for (const Loop& l : nest.parallel) shape.push_back(l.extent);
    shape.pop_back();
    return shape;
}

}  // namespace

bool finishes_turned(const Member& member, const KernelBuilder& builder) {
    const Nest& nest = member.nest;
    if (member.tree.finish_lanes > 1 || nest.parallel.size() < 2) return false;
    const Loop &columns = nest.parallel.back(), &last = nest.parallel[nest.parallel.size() - 2];
    const Int rows = count_of(rows_of(nest));
    if (!columns.extent.is_constant() || !rows.is_constant() || rows.constant() < turned_height ||
        columns.extent.constant() < fewest_turned || columns.extent.constant() > most_turned ||
        !last.variable.symbol_id())
        return false;
    return std::all_of(member.destinations.begin(), member.destinations.end(), [&](const Destination& d) {
        const Place& place = builder.ir.places[static_cast<std::size_t>(d.place)];
        return step_of(place, d.at, last.variable).is(1) && !step_of(place, d.at, columns.variable).is(1);
    });
}

Int tasks_of_turned_finish(const Member& member) {
    return ceildiv(count_of(rows_of(member.nest)), turned_height);
}

Stmts schedule_turned_finish(const Member& member, KernelBuilder& builder, int partial_place,
                             const Int& chunks, const Int& task) {
    const Nest& nest = member.nest;
    const DType dtype = accumulator_of(nest);
    const Shape shape = rows_of(nest);
    const Loop& columns = nest.parallel.back();
    const Loop row{Int::symbol("row", {0, turned_height - 1}),
                   min(turned_height, count_of(shape) - task * turned_height)};
    const std::vector<Int> at = unflattened(task * turned_height + row.variable, shape);
    const int sums = builder.scratch(Place::Scope::local, dtype, {Int(turned_height), columns.extent});
    const std::vector<Int> here{row.variable, columns.variable};
    const auto over_columns = [&](Stmts body) {
        return loop(columns.variable, 0, columns.extent, Binding::simd, std::move(body));
    };
    const Int chunk = Int::symbol("chunk", {0, chunks.range().high});
    std::vector<Int> from{chunk};
    from.insert(from.end(), at.begin(), at.end());
    from.push_back(columns.variable);
    Stmts each{over_columns({set(sums, here, neutral(nest.combine, dtype))})};
    each.push_back(
        loop(chunk, 0, chunks, Binding::serial,
             {over_columns({accumulate(sums, here, nest.combine, place_read(dtype, partial_place, from))})}));
    Stmts body{declare(sums), loop(row.variable, 0, row.extent, Binding::serial, std::move(each))};

    Substitution there;
    for (std::size_t d = 0; d < at.size(); ++d)
        if (const std::uint64_t id = nest.parallel[d].variable.symbol_id()) there[id] = at[d];
    Member moved;
    moved.nest.parallel = {columns, row};
    moved.nest.dtype = nest.dtype;
    moved.nest.body = scalar_cast(nest.dtype, place_read(dtype, sums, here));
    for (Destination d : member.destinations) {
        for (Int& x : d.at) x = substitute(x, there);
        moved.destinations.push_back(std::move(d));
    }
    append(body, schedule_map(moved, builder));
    return body;
}

}  // namespace bitale
