// Max-pooling over the last two axes, and which cell of each window won.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// "window", "stride", "pad" (vector<int64> {h, w}).
const Op* max_pool_op();  // x [..., h, w] -> [..., oh, ow]
const Op*
pool_winner_op();  // x -> cell ky * kw + kx of the first maximum, or of the first NaN; see winner_dtype

// The narrowest of uint8, uint16 and int32 that counts the cells of a window.
DType winner_dtype(const std::vector<std::int64_t>& window);

void register_pooling_ops();  // the gradients' nodes too

}  // namespace bitale
