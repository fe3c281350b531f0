// The normal form of reductions, before anything is decided by their loops: neighbouring loops of a reduction
// that walk memory as one axis are one loop. So a sum over two axes, the sum over the axis that a reshape has
// made of them, and the sum over two axes that a reshape has made of one, are the same nest.
#pragma once

#include "codegen/group/values.h"

namespace bitale {

void normalize_reductions(Values& values);

// Whether one loop can stand for the two, the second one inside of the first: every read of the nest moves
// by the first as by all of the second, and nothing else asks for one of them by itself.
bool walk_as_one(const Nest& nest, const Loop& outer, const Loop& inner, const ShapeOf& shape_of);

// Reduced loop number `outer` and the next one as one loop.
Nest joined(const Nest& nest, std::size_t outer);

}  // namespace bitale
