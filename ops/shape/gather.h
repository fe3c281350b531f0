// Rows chosen by an integer tensor: gather, and its transpose scatter.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* gather_op();  // x, indices: x[indices] along axis 0
const Op*
scatter_op();  // g, indices; "extent" (Int): row r of the result is the sum of the g[k] with indices[k] == r

}  // namespace bitale
