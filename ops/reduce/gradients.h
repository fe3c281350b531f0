// Gradients of the reductions, and what they share with them.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

std::vector<std::int64_t> reduced_axes(const Node& node);
Shape kept_as_ones(const Node& node);  // the operand's shape with length 1 on the reduced axes
Int reduced_count(const Node& node);   // how many elements one element of the result comes from
// A length as a float scalar, to divide by.
NodePtr number_of(const Int& length, DType dtype, Where where);

Nodes gradient_sum(const NodePtr& node, const NodePtr& g);
Nodes gradient_mean(const NodePtr& node, const NodePtr& g);
Nodes gradient_prod(const NodePtr& node, const NodePtr& g);  // right where factors are zero
Nodes gradient_max(const NodePtr& node, const NodePtr& g);   // to the first maximum only
Nodes gradient_min(const NodePtr& node, const NodePtr& g);
Nodes no_gradient(const NodePtr& node, const NodePtr& g);

}  // namespace bitale
