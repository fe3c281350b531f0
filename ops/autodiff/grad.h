// Reverse-mode differentiation of graphs.
#pragma once

#include <cstdint>
#include <vector>

#include "bitale/expr.h"
#include "graph/ir/node.h"

namespace bitale {

// What derivatives by values of a half type are: rounded to that type once, at the end, or float32 as they
// were computed.
enum class HalfGradients : std::uint8_t { rounded, wide };

// d cost / d wrt[k] for each k, as nodes that carry the lines of the forward nodes. The cost is canonicalized
// and stabilized first, with the wrt as barriers, so that what is differentiated is the form that does not
// overflow. A shared variable is matched by its storage, anything else by identity. Throws as bitale::grad
// does.
Nodes gradients(const NodePtr& cost, const Nodes& wrt, HalfGradients halves, Where where);
// The same of expressions, GraphError for empty ones.
std::vector<Expr> gradients(const Expr& cost, const std::vector<Expr>& wrt, HalfGradients halves,
                            Where where);

}  // namespace bitale
