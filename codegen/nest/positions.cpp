#include "codegen/nest/positions.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// The indices by which a nest reads, in the order of its body: loops are recognised by where they occur.
std::vector<Int> indices_of(const Nest& nest) {
    std::vector<Int> all;
    for_each_read(nest.body, [&](const ScalarNode& s) { all.insert(all.end(), s.at.begin(), s.at.end()); });
    return all;
}

// The first of the indices in which the loop occurs; their number where it does in none.
std::size_t place_of(const Loop& loop, const std::vector<Int>& indices) {
    const auto first = std::find_if(indices.begin(), indices.end(),
                                    [&](const Int& x) { return depends_on(x, loop.variable.symbol_id()); });
    return static_cast<std::size_t>(first - indices.begin());
}

}  // namespace

bool is_position(Combine combine) { return combine == Combine::argmax || combine == Combine::argmin; }

bool is_best_or_position(Combine combine) { return position_or_best(combine) != Combine::none; }

Combine position_or_best(Combine combine) {
    switch (combine) {
        case Combine::max: return Combine::argmax;
        case Combine::min: return Combine::argmin;
        case Combine::argmax: return Combine::max;
        case Combine::argmin: return Combine::min;
        default: return Combine::none;
    }
}

std::optional<Substitution> same_elements(const Nest& first, const Nest& second) {
    if (first.combine == Combine::none || second.combine != position_or_best(first.combine)) return {};
    if (!first.lets.empty() || !second.lets.empty() || first.reduced.size() != second.reduced.size())
        return {};
    Substitution with;
    // Positions count the reduced loops in their order.
    for (std::size_t i = 0; i < first.reduced.size(); ++i) {
        const Loop &own = first.reduced[i], &other = second.reduced[i];
        if (!(own.extent == other.extent)) return {};
        if (const std::uint64_t id = other.variable.symbol_id()) with[id] = own.variable;
    }
    // Results may lie in another order of axes.
    const std::vector<Int> indices = indices_of(first), others = indices_of(second);
    std::vector<const Loop*> free;
    for (const Loop& own : first.parallel)
        if (own.variable.symbol_id()) free.push_back(&own);
    for (const Loop& other : second.parallel) {
        const std::uint64_t id = other.variable.symbol_id();
        if (!id) continue;
        const auto own = std::find_if(free.begin(), free.end(), [&](const Loop* l) {
            return l->extent == other.extent && place_of(*l, indices) == place_of(other, others);
        });
        if (own == free.end()) return {};
        with[id] = (*own)->variable;
        free.erase(own);
    }
    const auto same_guard = [&](const Guard& g, const Guard& h) {
        return g == Guard{substitute(h.value, with), substitute(h.low, with), substitute(h.high, with)};
    };
    const Nest& best = is_position(first.combine) ? second : first;
    const bool same = free.empty() && best.accumulator == best.body->dtype &&
                      std::equal(first.guards.begin(), first.guards.end(), second.guards.begin(),
                                 second.guards.end(), same_guard) &&
                      same_scalars(first.body, substitute(second.body, with));
    if (!same) return {};
    return with;
}

}  // namespace bitale
