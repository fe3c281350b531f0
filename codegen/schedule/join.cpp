#include "codegen/schedule/join.h"

#include <algorithm>
#include <cstddef>

#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

std::vector<Int> offsets(const Member& member, const std::vector<Place>& places) {
    std::vector<Int> list;
    const auto add = [&](int place, const std::vector<Int>& at) {
        list.push_back(offset_of(places[static_cast<std::size_t>(place)], at));
    };
    for_each_read(member.nest.body, [&](const ScalarNode& s) { add(s.operand.place(), s.at); });
    for (const Destination& d : member.destinations) add(d.place, d.at);
    for_each_index(member.nest.body, [&](const Int& number) { list.push_back(number); });
    return list;
}

void replace(Member& member, const Substitution& with) {
    const std::vector<Loop> loops = member.nest.parallel;
    member.nest = substitute(member.nest, with);
    member.nest.parallel = loops;
    for (Destination& d : member.destinations)
        for (Int& x : d.at) x = substitute(x, with);
}

bool bounds_others(const Nest& nest, const Int& variable) {
    return std::any_of(nest.reduced.begin(), nest.reduced.end(),
                       [&](const Loop& l) { return depends_on(l.extent, variable.symbol_id()); });
}

// The guards that depend on the outer of two loops, about both: a + r >= low where a * n + b + r * n >= low *
// n, and likewise above, for b from 0 below n. With `both` null they are left out.
Scalar with_guards_of_both(const Scalar& body, const Loop& a, const Int& n, const Int* both) {
    const std::uint64_t id = a.variable.symbol_id();
    return rebuild(body, [&](const std::shared_ptr<ScalarNode>& s) -> Scalar {
        std::vector<Guard> guards;
        for (const Guard& g : s->guards) {
            const Int rest = g.value - a.variable;
            const bool moves = depends_on(g.value, id);
            if (!moves || depends_on(rest, id) || depends_on(g.low, id) || depends_on(g.high, id))
                guards.push_back(g);
            else if (both)
                guards.push_back({*both + rest * n, g.low * n, g.high * n});
        }
        s->guards = std::move(guards);
        return s;
    });
}

void join(Member& member, std::size_t outer, const std::vector<Place>& places) {
    Nest& nest = member.nest;
    const Loop a = nest.parallel[outer], b = nest.parallel[outer + 1];
    const bool numbers = !nest.lets.empty();  // of the body alone they are among the offsets
    if (!b.extent.is_constant() || restricted(nest, b.variable, numbers)) return;
    Nest unguarded = nest;
    unguarded.body = with_guards_of_both(nest.body, a, b.extent, nullptr);
    if (restricted(unguarded, a.variable, numbers) || bounds_others(nest, a.variable) ||
        bounds_others(nest, b.variable))
        return;
    for (const Int& offset : offsets(member, places)) {
        const std::optional<Int> far = stride_of(offset, a.variable), near = stride_of(offset, b.variable);
        if (!far || !near || !(*far == *near * b.extent)) return;
        if (depends_on(*far, b.variable.symbol_id()) || depends_on(*near, a.variable.symbol_id())) return;
    }
    const Loop both = make_loop("point", a.extent * b.extent);
    if (!both.variable.symbol_id()) return;
    nest.body = with_guards_of_both(nest.body, a, b.extent, &both.variable);
    nest.parallel[outer] = both;
    nest.parallel.erase(nest.parallel.begin() + static_cast<std::ptrdiff_t>(outer) + 1);
    replace(member, {{a.variable.symbol_id(), floordiv(both.variable, b.extent)},
                     {b.variable.symbol_id(), mod(both.variable, b.extent)}});
}

}  // namespace

void join_results(Member& member, const std::vector<Place>& places) {
    std::erase_if(member.nest.parallel, [](const Loop& l) { return l.variable.symbol_id() == 0; });
    for (std::size_t i = member.nest.parallel.size(); i-- > 1;) join(member, i - 1, places);
}

}  // namespace bitale
