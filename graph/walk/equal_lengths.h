// merge_equal_lengths: lengths that every valid call makes equal become one length.
#pragma once

#include "graph/ir/graph.h"

namespace bitale {

// The equalities of the graph's ops (Op::equalities) and of its updates are linear equations between lengths.
// Where such an equation gives the length of an input's axis as a number, or through at most one other
// symbol, that expression takes the place of the length in the types and attributes of the whole graph; the
// inputs are replaced by inputs of the new types. Code generation then sees that the two factors of
// dot(x, y) have a common axis although x is [n, k] and y is [m, p]. A call still checks k == m first: the
// signature holds the checks of the graph as it was. A graph that no call can satisfy stays as it is. The
// values of integer inputs are never replaced. Iterative.
void merge_equal_lengths(Graph& graph);

}  // namespace bitale
