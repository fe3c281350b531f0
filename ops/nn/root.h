// Roots of what is never below 0, as composites, so that their gradients are chosen where they are 0.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// x, not below 0; "exponent" (double, between 0 and 1): x to the power of it. Where x is 0 it is at its
// least, and the derivatives of x are 0 there: so is the gradient of the root, and not 0 times infinity.
const Op* root_op();

NodePtr make_root(const NodePtr& x, double exponent, Where where);

void register_root_ops();

}  // namespace bitale
