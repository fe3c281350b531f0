// The product of vectors and matrices: dot.
#pragma once

#include <string>

#include "graph/ir/node.h"

namespace bitale {

const Op* dot_op();  // a, b: float vectors or matrices; sums over a's last and b's first axis

// TypeError unless both are float32 or both float64; `name` is that of the op.
void require_floats(const std::string& name, const NodePtr& a, const NodePtr& b, Where where);

void register_contract_ops();

}  // namespace bitale
