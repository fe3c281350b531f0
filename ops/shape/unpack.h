// Elements of few bits, several of which share a byte.
#pragma once

#include "graph/ir/bit_planes.h"
#include "graph/ir/node.h"

namespace bitale {

const Op* unpack_op();  // bytes (uint8); "bits" (int64), "shape" (vector<Int>), "planes" (vector<int64>):
                        // uint8, the bits of each element, by BitPlanes

NodePtr make_unpack(const BitPlanes& planes, const NodePtr& bytes, Where where);

}  // namespace bitale
