// Maps that give most elements back as they were, as a cache of which a call sets one row: where the result
// takes the place of the old array, the other elements need not be visited.
//
//     for i in [start, start + count): x[i] = y[i - start]
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

struct ChangedPart {
    Nest around;              // the lets that are the same for all elements, declared around all loops
    Nest nest;                // over the elements of a box, some of which may still be as before
    std::vector<Int> starts;  // of the box, for each axis; in terms of the lets
};

// Nothing where all elements change, or those that do lie in no box. `is_old`: reads of the old array.
std::optional<ChangedPart> changed_part(const Nest& nest,
                                        const std::function<bool(const ScalarNode&)>& is_old);

}  // namespace bitale
