// Lookups and scatters at places that are known when a graph is compiled, as gather(x, 512 * i + j) of two
// ranges: lookups are views, whose strides schedules see, and each row of a scatter finds its own terms.
#pragma once

#include <vector>

#include "codegen/group/values.h"

namespace bitale {

// Whether a scatter's terms go to places at which each row finds its own: for row = i + j, those of
// i = row - j. Takes no longer than a visit of all terms.
bool has_known_places(const Node& scatter);

// Puts the places into the nests that look up and scatter. For each value, whether it is such a number: never
// worth a copy, which would hide how far it moves.
std::vector<bool> name_known_places(Values& values);

}  // namespace bitale
