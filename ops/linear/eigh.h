// Eigenvalues and eigenvectors of symmetric matrices, as one op.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// a [..., n, n], float32 or float64 -> [..., n + 1, n]: the eigenvalues in ascending order, and behind them
// the eigenvectors, each a row. A node has one result; that of several things is one tensor of which views
// take the parts, which are free where they are read.
const Op* eigh_op();

NodePtr eigenvalues_of(const NodePtr& eigh, Where where);   // [..., n]
NodePtr eigenvectors_of(const NodePtr& eigh, Where where);  // [..., n, n], each a column

void register_eigh_ops();

}  // namespace bitale
