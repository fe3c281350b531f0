// What users call of the scans, their gradients, and the composite logcumsumexp.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* logcumsumexp_op();  // x, float32 or float64; as the scans (scan.h)

Nodes gradient_cumsum(const NodePtr& node, const NodePtr& g);
Nodes gradient_cumprod(const NodePtr& node, const NodePtr& g);  // right where elements are zero
Nodes gradient_recurrence(const NodePtr& node, const NodePtr& g);

}  // namespace bitale
