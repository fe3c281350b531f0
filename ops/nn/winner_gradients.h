// A convolution's gradient with respect to its filters where pooling follows: only the winners of the windows
// have one, so it is a sum over windows, of the window's gradient times what the filters met at its winner.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// x [n, c, h, w], g [n, o, ph, pw], winner (pool_winner's, of g's shape) -> [o, c, kh, kw]: the same as
// conv_grad_w(x, unpool(g, winner)), but that what x holds where nothing won is not multiplied by 0. conv's
// attributes and conv_grad_w's "kernel"; of the pooling "pool_window", "pool_stride", "pool_pad", and of what
// it pooled "height", "width" (Int).
const Op* conv_grad_w_winners_op();

// From conv_grad_w(x, unpool(g, winner)), and back.
NodePtr through_winners(const NodePtr& conv_grad_w);
NodePtr through_all_places(const NodePtr& conv_grad_w_winners);

}  // namespace bitale
