// Columns that vector lanes read: transposed copies of operands whose neighbours lie apart in memory.
#pragma once

#include "codegen/target.h"
#include "graph/ir/graph.h"

namespace bitale {

// sum(sqr(expand_dims(x, 1) - y), 2) of points x [n, d] and y [m, d], and all of x[:, k] - x[:, k] by pairs,
// compute neighbouring results, or add neighbouring terms, of elements that lie d apart. What reads each
// element of such an operand many times reads a transposed copy, [d, m], where they lie side by side. Orders
// of sums stay as they are. For vectors only: threads find such elements in a cache.
void transpose_columns(Graph& graph, const Target& target);

}  // namespace bitale
