// Lookups at places that are known when a graph is compiled, as gather(x, 512 * i + j) of two ranges: they
// are views, whose strides schedules see.
#pragma once

#include <vector>

#include "codegen/group/values.h"

namespace bitale {

// Puts the places into the nests that look up. For each value, whether it is such a number: never worth a
// copy, which would hide how far it moves.
std::vector<bool> name_known_places(Values& values);

}  // namespace bitale
