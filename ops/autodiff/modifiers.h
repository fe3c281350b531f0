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

void register_autodiff_ops();

}  // namespace bitale
