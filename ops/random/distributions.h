// Random composites. Every one has the operand `counter` (uint64 scalar) and the attribute "key" (int64: the
// bits of the 64-bit key); element i is a pure function of (key, counter, i), so that nothing need be stored
// to use it twice.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* uniform_op();  // counter; "shape" (vector<Int>), "low", "high" (double): float32
const Op* normal_op();   // counter; "shape" (vector<Int>), "mean", "deviation" (double): float32

// Uniform numbers in [0, 1) of a shape, 24 bits each, as a float32 node of primitives.
NodePtr make_unit_uniform(std::int64_t key, const NodePtr& counter, const Shape& shape, Where where);

void register_random_ops();

}  // namespace bitale
