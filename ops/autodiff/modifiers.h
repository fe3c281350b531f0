// Ops that change gradients and nothing else.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* disconnected_grad_op();  // x: the value of x; no gradient flows to it

void register_autodiff_ops();

}  // namespace bitale
