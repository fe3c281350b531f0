// Convolution of images: conv2d and its node "conv".
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// x [n, c, h, w], w [o, c, kh, kw] -> [n, o, oh, ow]; "stride", "dilation", "pad" (vector<int64> {h, w}),
// "flip".
const Op* conv_op();

void register_conv_ops();  // conv and its gradients

}  // namespace bitale
