// The gradients of conv. The three are the partial sums of one trilinear form, so each one's gradients are
// the others.
#pragma once

#include <array>

#include "ops/linear/conv_geometry.h"

namespace bitale {

// g [n, o, oh, ow], w [o, c, kh, kw] -> [n, c, height, width]; conv's attributes, "height", "width" (Int).
const Op* conv_grad_x_op();
// x [n, c, h, w], g [n, o, oh, ow] -> [o, c, kh, kw]; conv's attributes, "kernel" (vector<int64> {kh, kw}).
const Op* conv_grad_w_op();

NodePtr make_conv_grad_x(const NodePtr& g, const NodePtr& w, const ConvGeometry& geometry, const Int& height,
                         const Int& width, Where where);
// The same gradient with its sum in another order: tap by tap, the channels of each one after another, as a
// sum that passes over places without a gradient meets them. Null for one that has this order.
NodePtr with_taps_first(const NodePtr& conv_grad_x);
NodePtr make_conv_grad_w(const NodePtr& x, const NodePtr& g, const ConvGeometry& geometry,
                         std::array<std::int64_t, 2> kernel, Where where);

}  // namespace bitale
