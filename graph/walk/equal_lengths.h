// Lengths that every valid call makes equal become one length, and lengths that are known become numbers.
#pragma once

#include "graph/ir/graph.h"

namespace bitale {

// The lengths of the graph's inputs that its equalities give, by symbol: a number, or an expression of at
// most one other symbol. Empty where no call can satisfy all of them.
Substitution equal_lengths(const Graph& graph);

// The equalities of the graph's ops (Op::equalities) and of its updates are linear equations between lengths.
// Where such an equation gives the length of an input's axis as a number, or through at most one other
// symbol, that expression takes the place of the length in the types and attributes of the whole graph; the
// inputs are replaced by inputs of the new types. Code generation then sees that the two factors of
// dot(x, y) have a common axis although x is [n, k] and y is [m, p]. A call still checks k == m first: the
// signature holds the checks of the graph as it was. A graph that no call can satisfy stays as it is. The
// values of integer inputs are never replaced. Iterative.
void merge_equal_lengths(Graph& graph);

// These lengths of inputs become numbers in the whole graph, as if the inputs had been declared so, with the
// lengths that follow from them by the equalities. Throws ShapeError where no call can have all of them, or a
// type rule refuses them.
void set_lengths(Graph& graph, const Substitution& numbers);

}  // namespace bitale
