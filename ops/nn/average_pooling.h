// Average-pooling over the last two axes.
#pragma once

#include "graph/ir/op.h"

namespace bitale {

// x [..., h, w] -> [..., oh, ow]; "window", "stride", "pad" as of max_pool, "count_padding" (bool). A
// composite: sums of slices, along the columns of a window and then along its rows.
const Op* average_pool_op();

}  // namespace bitale
