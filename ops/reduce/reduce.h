// Reductions over axes: sum prod max min any all argmax argmin, and the composite mean.
#pragma once

#include "bitale/ops.h"
#include "graph/ir/node.h"

namespace bitale {

// All: x; "axes" (vector<int64>, sorted); the result keeps the other axes only.
const Op* sum_op();
const Op* prod_op();
const Op* max_op();
const Op* min_op();
// As max, but of nothing it is the lowest number, -inf for floats: any length will do. No gradient.
const Op* supremum_op();
const Op* any_op();
const Op* all_op();
const Op* argmax_op();
const Op* argmin_op();
const Op* mean_op();

// In what a kernel adds or multiplies: float32 for the half types, int64 or uint64 for integers and booleans.
DType accumulator_of(DType dtype);

NodePtr make_sum(const NodePtr& x, const std::vector<std::int64_t>& axes,
                 Where where);  // x itself for no axes

// What users call: axes from either end, none for all of them.
Expr reduce(const Op* op, const Expr& x, const Axes& axes, ReduceOptions options, Where where);

void register_reduce_ops();

}  // namespace bitale
