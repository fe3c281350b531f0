#include "codegen/schedule/together.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "codegen/nest/positions.h"
#include "codegen/schedule/accumulation.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/tile.h"

namespace bitale {

namespace {

// What loops of the second nest are in the first one, if all are as long.
std::optional<Substitution> same_loops(const Nest& first, const Nest& second) {
    Substitution with;
    for (const auto loops : {&Nest::parallel, &Nest::reduced}) {
        if ((first.*loops).size() != (second.*loops).size()) return {};
        for (std::size_t i = 0; i < (first.*loops).size(); ++i) {
            const Loop &own = (first.*loops)[i], &other = (second.*loops)[i];
            if (!(own.extent == other.extent)) return {};
            if (const std::uint64_t id = other.variable.symbol_id()) with[id] = own.variable;
        }
    }
    return with;
}

void take_loops(Member& member, const Nest& of, const Substitution& with) {
    Nest& nest = member.nest;
    nest.body = substitute(nest.body, with);
    nest.parallel = of.parallel;
    nest.reduced = of.reduced;
    for (Destination& d : member.destinations)
        for (Int& x : d.at) x = substitute(x, with);
}

bool can_be_added_side_by_side(const Member& member, const Member& first) {
    const ReductionTree &tree = member.tree, &of_first = first.tree;
    return tree.lanes == of_first.lanes && tree.groups == of_first.groups && !tree.split && !tree.by_rows &&
           member.nest.lets.empty() && member.nest.guards.empty() && !is_position(member.nest.combine) &&
           member.nest.combine != Combine::none;
}

}  // namespace

std::optional<Stmts> schedule_together(std::vector<Member> members, const Target& target,
                                       KernelBuilder& builder) {
    Member& first = members[0];
    if (members.size() == 2 && position_or_best(first.nest.combine) != Combine::none &&
        members[1].nest.combine == position_or_best(first.nest.combine)) {
        const std::optional<Substitution> same = same_elements(first.nest, members[1].nest);
        if (!same) return {};
        members[1].nest.parallel = first.nest.parallel;
        for (Destination& d : members[1].destinations)
            for (Int& x : d.at) x = substitute(x, *same);
        return schedule_with_positions(first, members[1], target, builder);
    }
    for (Member& member : members) {
        const std::optional<Substitution> same = same_loops(first.nest, member.nest);
        if (!same || !can_be_added_side_by_side(member, first)) return {};
        if (&member != &first) take_loops(member, first.nest, *same);
    }
    if (first.tree.lanes == 1) {
        const int v = vector_loop(first.nest, builder.shapes());
        return v < 0 ? std::nullopt : schedule_tiles_together(members, builder, v);
    }
    LoopBuilder loops(first.nest);
    return loops.nest(first.nest.parallel, [&](LoopBuilder& inner) {
        std::vector<Accumulation> sums;
        sums.reserve(members.size());
        for (const Member& member : members) sums.emplace_back(member, builder, Shape{});
        Stmts body;
        for (const Accumulation& sum : sums) append(body, sum.declare_all());
        for (const Accumulation& sum : sums) append(body, sum.clear({}));
        std::vector<const Accumulation*> others;
        for (std::size_t k = 1; k < sums.size(); ++k) others.push_back(&sums[k]);
        append(body,
               sums[0].combine(
                   inner, first.nest.reduced, {Copy{}}, [](Stmts s) { return s; }, WrittenOut{}, others));
        for (std::size_t k = 0; k < sums.size(); ++k) {
            append(body, sums[k].finish({}));
            append(body, stores(members[k], sums[k].result({})));
        }
        return body;
    });
}

}  // namespace bitale
