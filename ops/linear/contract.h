// The product of vectors and matrices: dot.
#pragma once

#include <cstddef>
#include <string>

#include "bitale/ops.h"
#include "graph/ir/node.h"

namespace bitale {

// a, b: vectors or matrices of floats; sums over a's last and b's first axis. Code generation makes products
// of int32 as well.
const Op* dot_op();

// TypeError unless both are float32 or both float64; `name` is that of the op.
void require_floats(const std::string& name, const NodePtr& a, const NodePtr& b, Where where);

// Integers and booleans are multiplied and added exactly, in the dtype of a sum of both: casts both to int64,
// or to uint64 where both are unsigned. True if it did; false where an operand is of floats. TypeError for
// uint64 with a signed integer; `name` is that of the op.
bool widen_integers(const std::string& name, Expr& a, Expr& b, Where where);

// `x` with the length that its axis has to have beside the other operand's: 1 beside 1, which would
// broadcast.
Expr beside(const Expr& x, std::size_t axis, const Int& other, Where where);

void register_contract_ops();

}  // namespace bitale
