// Elementwise operations as records: what the rows of bitale/elementwise_table.h become.
#pragma once

#include <vector>

#include "bitale/ops.h"
#include "graph/ir/node.h"

namespace bitale {

// add_op(), exp_op() ...: one for each row.
#define BITALE_UNARY(name, ...) const Op* name##_op();
#define BITALE_BINARY(name, ...) const Op* name##_op();
#define BITALE_TERNARY(name, ...) const Op* name##_op();
#include "bitale/elementwise_table.h"
#undef BITALE_UNARY
#undef BITALE_BINARY
#undef BITALE_TERNARY
const Op* cast_op();  // x; "dtype" (DType)

// The ops of the rows, in the order of the table; cast is not among them.
const std::vector<const Op*>& elementwise_ops();
// Whether a row computes on operands of this dtype.
bool computes_on(const Op* op, DType dtype);

// What the functions of the rows do: literals take the dtype of what they meet, operands are cast to the
// common dtype and broadcast. Throws TypeError and ShapeError. Of literals only: a literal.
Expr elementwise(const Op* op, const std::vector<Expr>& operands, Where where);

void register_elementwise_ops();

}  // namespace bitale
