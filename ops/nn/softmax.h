// The composites softmax and log_softmax: x; "axis" (int64, not negative). Never overflow: the maximum is
// subtracted.
#pragma once

#include "ops/dsl/compose.h"

namespace bitale {

const Op* softmax_op();
const Op* log_softmax_op();

Term softmax_of(const Term& x, int axis);
Term log_softmax_of(const Term& x, int axis);
// The sum along one axis, which stays with length 1.
Term sum_kept(const Term& x, int axis);
// The maximum over axes that stay with length 1: -inf of nothing, where that may be.
Term highest_kept(const Term& x, const std::vector<std::int64_t>& axes);
// softmax or log_softmax over several axes as if they were one.
NodePtr softmax_over(const Op* op, const NodePtr& x, const std::vector<std::int64_t>& axes, Where where);

void register_softmax_ops();

}  // namespace bitale
