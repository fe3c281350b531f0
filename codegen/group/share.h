// How many of its points a nest reads an operand at, by the guards of its reads: of each part of a
// concatenation, as many as the part has.
#pragma once

#include "graph/ir/nest.h"

namespace bitale {

// From 0 to 1. Guards that ask for more than where one loop is count as though they held.
double share_of_points(const Nest& nest, const ScalarNode& read);

}  // namespace bitale
