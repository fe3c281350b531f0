// Reductions as composites, so that rules and gradients see them whole: logsumexp, and the norm
// sqrt(sum(sqr(x))).
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// x; "axes" (vector<int64>, sorted); float32 or float64. The result keeps the other axes only.
const Op* logsumexp_op();
const Op* norm_op();  // its gradient is 0 where it is 0

void register_logsumexp_ops();

}  // namespace bitale
