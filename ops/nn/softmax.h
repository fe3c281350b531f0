// The composites softmax and log_softmax: x; "axis" (int64, not negative). Never overflow: the maximum is
// subtracted.
#pragma once

#include "ops/dsl/compose.h"

namespace bitale {

const Op* softmax_op();
const Op* log_softmax_op();

Term softmax_of(const Term& x, int axis);
Term log_softmax_of(const Term& x, int axis);
// Sum and maximum along one axis, which stays with length 1.
Term sum_kept(const Term& x, int axis);
Term max_kept(const Term& x, int axis);

void register_softmax_ops();

}  // namespace bitale
