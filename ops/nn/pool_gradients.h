// The nodes of max-pooling's gradients. A gradient goes to the first maximum of each window alone: `unpool`
// puts it there, `pool_pick` reads what is there. Both carry max_pool's attributes, each is the other's
// gradient.
#pragma once

#include "ops/nn/pool_geometry.h"

namespace bitale {

// g [..., oh, ow], winner; "height", "width" (Int) -> [..., height, width]: overlapping windows add up, the
// rest is 0.
const Op* unpool_op();
// x [..., h, w], winner [..., oh, ow] -> [..., oh, ow].
const Op* pool_pick_op();

NodePtr make_unpool(const NodePtr& g, const NodePtr& winner, const PoolGeometry& geometry, const Int& height,
                    const Int& width, Where where);

}  // namespace bitale
