// Positions in ascending order of keys, and sums over runs of equal keys: what code generation makes of a
// scatter whose rows are too many to look at all indices.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op*
argsort_op();  // keys [n], integers: the positions of the keys in ascending order, equal ones as they come
const Op* sum_runs_op();  // x, keys; "extent" (Int): as scatter(x, keys), of keys that are in ascending order

// scatter(g, indices) by a stable sort of the indices: the same sums in the same order. Indices are the
// node's own operand; equal operands share one sort by `sorted`.
struct SortedKeys {
    NodePtr order, keys;
};
SortedKeys make_sorted(const NodePtr& indices, const Int& extent, Where where);
NodePtr make_scatter_of_sorted(const NodePtr& scatter, const SortedKeys& sorted);

}  // namespace bitale
