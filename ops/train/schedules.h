// The count of steps as an op: whoever builds a function sees by it which counters move on.
#pragma once

#include "graph/ir/op.h"

namespace bitale {

const Op* step_count_op();  // the value of a shared counter
void register_training_ops();

}  // namespace bitale
