// The composite dropout.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// x, counter (uint64 scalar); "key" (int64, as of the random composites), "rate" (double). Its gradient is
// dropout of the gradient with the same key: the same mask, computed again.
const Op* dropout_op();

void register_dropout_ops();

}  // namespace bitale
