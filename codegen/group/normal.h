// The normal form of reductions, before anything is decided by their loops: they walk forwards through
// memory, the loops with the longest steps outside, and neighbours that walk memory as one axis are one loop.
// So a sum over two axes, the sum over the axis that a reshape has made of them, the sum over two axes that a
// reshape has made of one, and those of the same elements turned or from the end, are the same nest.
// Positions keep the order by which they are numbered, and products that share factors their loops.
#pragma once

#include "codegen/group/values.h"

namespace bitale {

void normalize_reductions(Values& values);

}  // namespace bitale
