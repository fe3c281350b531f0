// The product of vectors and matrices: dot.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* dot_op();  // a, b: float vectors or matrices; sums over a's last and b's first axis

void register_contract_ops();

}  // namespace bitale
