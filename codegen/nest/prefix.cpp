#include "codegen/nest/prefix.h"

#include <algorithm>

#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Whether what a point adds is the same for every place.
bool is_same_for_all(const Nest& nest, const Int& place) {
    const std::uint64_t id = place.symbol_id();
    return !depends_on(nest.body, id) && std::none_of(nest.lets.begin(), nest.lets.end(), [&](const Let& l) {
        return depends_on(l.value, id) || depends_on(l.extent, id);
    });
}

}  // namespace

std::optional<PrefixForm> prefix_form(const Nest& nest) {
    if (nest.combine == Combine::none || gives_places(nest.combine) || nest.reduced.size() != 1 ||
        nest.guards.size() != 1)
        return {};
    const Loop& before = nest.reduced[0];
    const Guard& guard = nest.guards[0];
    if (!(guard.value == before.variable) || !guard.low.is(0)) return {};
    for (std::size_t i = 0; i < nest.parallel.size(); ++i) {
        const Loop& place = nest.parallel[i];
        if (!place.variable.symbol_id() || !(place.extent == before.extent)) continue;
        const Int from_end = place.extent - 1 - place.variable;
        for (const bool reverse : {false, true})
            for (const bool inclusive : {false, true}) {
                const Int here = reverse ? from_end : place.variable;
                if (guard.high == (inclusive ? here + 1 : here) && is_same_for_all(nest, place.variable))
                    return PrefixForm{i, reverse, inclusive};
            }
    }
    return {};
}

bool is_prefix(const Nest& nest) { return prefix_form(nest).has_value(); }

bool is_prefix_of_columns(const Nest& nest) {
    const std::optional<PrefixForm> form = prefix_form(nest);
    if (!form) return false;
    const auto behind = nest.parallel.begin() + static_cast<std::ptrdiff_t>(form->place) + 1;
    return form->place == 0 || std::any_of(behind, nest.parallel.end(),
                                           [](const Loop& l) { return l.variable.symbol_id() != 0; });
}

}  // namespace bitale
