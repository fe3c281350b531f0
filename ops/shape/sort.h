// Positions in the order of what is there, elements at such positions, and sums over runs of equal keys.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// x [..., n], any dtype; "count" (Int, at most n), "descending" (bool), "dtype" (int32 or int64): of each row
// the positions of its first elements in order, equal ones as they come; NaN is greater than all numbers.
const Op* argsort_op();
// x [..., n], positions [..., count] within its rows; "permutation" (bool): each position is there once.
const Op* take_along_op();
// g [..., count], positions; "extent" (Int): zeros [..., extent] with g added at the positions.
const Op* put_along_op();
const Op* sum_runs_op();  // x, keys; "extent" (Int): as scatter(x, keys), of keys that are in ascending order

NodePtr make_argsort(const NodePtr& x, const Int& count, bool descending, DType dtype, Where where);

// What code generation makes of a scatter whose rows are too many to look at all indices: scatter(g, indices)
// by a stable sort of the indices, the same sums in the same order. Indices are the node's own operand; equal
// operands share one sort by `sorted`.
struct SortedKeys {
    NodePtr order, keys;  // no order where there is one key
};
SortedKeys make_sorted(const NodePtr& indices, const Int& extent, Where where);
NodePtr make_scatter_of_sorted(const NodePtr& scatter, const SortedKeys& sorted);

}  // namespace bitale
