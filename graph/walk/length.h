// Integer scalars as lengths: minibatch bounds and shapes are numbers that the host knows at a call.
#pragma once

#include <optional>

#include "graph/ir/node.h"

namespace bitale {

// The Int for an integer rank-0 node over constants, integer scalar inputs and the ops that have `as_length`;
// nothing for a value that only the device knows.
std::optional<Int> length_of(const NodePtr& scalar);

}  // namespace bitale
