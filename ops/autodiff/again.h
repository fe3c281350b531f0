// What a gradient computes again instead of reading it from the forward pass: values before checkpoints.
#pragma once

#include <unordered_map>

#include "graph/walk/traverse.h"

namespace bitale {

// `results`: gradients whose nodes read those of `forward`, operands before users, the cost last. Of these,
// what leads to the cost through checkpoints alone is replaced by copies that begin at again(x, cotangent of
// the checkpoint) (modifiers.h). What depends on leaves of `parameters` and constants alone stays.
// `cotangents`: of the checkpoints, where there are any.
Nodes computed_again(const Nodes& results, const Nodes& forward, const Nodes& parameters,
                     const std::unordered_map<const Node*, NodePtr>& cotangents);

}  // namespace bitale
