// Ops that change gradients and nothing else.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* disconnected_grad_op();  // x: the value of x; no gradient flows to it

const Op* checkpoint_op();  // x: the value of x; gradients compute again what is before it
// x, after: x as an operand of what a gradient computes again. Equal to x for nobody but code generation, so
// that what is computed from it is not taken for values of the forward pass; and it is there when `after` is,
// if that is given. Code generation takes it off and keeps the order.
const Op* again_op();

// cotangent, condition: where the cotangent is not 0. The cotangent is 0 wherever the condition fails, and
// its own zeros are cheaper to ask for than the condition is to compute; gradients of what is selected
// thereby are selected by the condition.
const Op* flows_op();

void register_autodiff_ops();

}  // namespace bitale
