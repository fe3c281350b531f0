// What op families share to build expressions.
#pragma once

#include <string>
#include <vector>

#include "bitale/ops.h"
#include "graph/base/border.h"
#include "graph/ir/nest.h"
#include "graph/ir/node.h"

namespace bitale {

// Around what users call to build expressions: want of memory is OutOfMemory.
extern const ApiBorder expressing;

inline Expr wrap(NodePtr node) { return Expr(std::move(node)); }
// make_node over expressions.
Expr apply(const Op* op, const std::vector<Expr>& inputs, Attributes attributes = {}, Where where = {});
inline const Type& type_of(const Expr& x) { return x.node()->type; }

// A literal (weak) operand becomes `dtype`; throws TypeError when it does not fit (uint8 - 300).
Expr strengthen(const Expr& x, DType dtype, Where where);
// Views that give all operands one shape: axes of length exactly 1 and missing leading axes are expanded;
// rank-0 operands stay rank 0 (maps take them). Throws ShapeError.
std::vector<Expr> broadcast(const std::vector<Expr>& operands, const char* op, Where where);
Expr expand_to(const Expr& x, const Shape& shape, Where where);   // the view node "expand"
Expr reshape_to(const Expr& x, const Shape& shape, Where where);  // the view node "reshape"
// -rank <= axis < rank, else IndexError.
int checked_axis(int axis, int rank, const char* op, Where where);
// The length that an expression stands for; GraphError unless the host knows it at the call.
Int length_from(const Expr& x, const char* op, Where where);
// A length as an expression (int64 rank 0): constant, or the node "length" that evaluates the Int.
Expr expr_of(const Int& length, Where where);
[[noreturn]] void type_error(Where where, const std::string& op, const std::string& message);

}  // namespace bitale
