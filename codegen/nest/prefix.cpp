#include "codegen/nest/prefix.h"

#include <algorithm>

#include "codegen/nest/walk.h"

namespace bitale {

bool is_prefix(const Nest& nest) {
    if (nest.combine == Combine::none || gives_places(nest.combine) || nest.reduced.size() != 1 ||
        nest.parallel.empty() || nest.guards.size() != 1)
        return false;
    const Loop &place = nest.parallel.back(), &before = nest.reduced[0];
    const std::uint64_t id = place.variable.symbol_id();
    const Guard& guard = nest.guards[0];
    return id != 0 && place.extent == before.extent && guard.value == before.variable && guard.low.is(0) &&
           guard.high == place.variable && !depends_on(nest.body, id) &&
           std::none_of(nest.lets.begin(), nest.lets.end(), [&](const Let& let) {
               return depends_on(let.value, id) || depends_on(let.extent, id);
           });
}

}  // namespace bitale
