// Rows chosen by an integer tensor: gather, its transpose scatter, and set_list, which puts rows back.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* gather_op();  // x, indices: x[indices] along axis 0
const Op*
scatter_op();  // g, indices; "extent" (Int): row r of the result is the sum of the g[k] with indices[k] == r
// x, part, indices: x with part[k] as its row indices[k], of equal indices by the last k.
const Op* set_list_op();

// TypeError unless the indices are integers; `op` is that of the user.
void require_integers(const NodePtr& indices, const char* op, Where where);

}  // namespace bitale
