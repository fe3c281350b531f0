// Best elements, maxima or minima, and their positions: two reductions that can share one walk over what they
// read.
#pragma once

#include <optional>

#include "graph/ir/nest.h"

namespace bitale {

bool is_position(Combine combine);          // argmax, argmin
bool is_best_or_position(Combine combine);  // max, min, argmax, argmin

// The combine that finds the position of what this one finds, or the other way round; none for all others.
Combine position_or_best(Combine combine);

// What makes the second nest one over the loops of the first, where one finds the best of the elements that
// the other finds the position of. Nothing where these are not the same elements, in the same order.
std::optional<Substitution> same_elements(const Nest& first, const Nest& second);

}  // namespace bitale
