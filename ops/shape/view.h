// Views that keep every element or repeat it: reshape, permute, expand, flip.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* reshape_op();  // x; "shape" (vector<Int>): the same elements in row-major order under another shape
const Op* permute_op();  // x; "axes" (vector<int64>): output axis i is input axis axes[i]
// x; "axes" as of permute; in memory, for readers whose neighbours want neighbours along the last axis
const Op* transposed_copy_op();
const Op* expand_op();  // x; "shape" (vector<Int>): missing leading axes and axes of length 1 repeat
// As expand; in memory where lanes want neighbours along an axis that repeats
const Op* repeated_copy_op();
const Op* flip_op();  // x; "axis" (int64): reversed along one axis

// The axes of the permute that undoes one.
std::vector<std::int64_t> inverse_axes(const std::vector<std::int64_t>& axes);

// Nodes at graph level, for gradients and decompositions. Each returns x itself where nothing would change.
NodePtr make_reshape(const NodePtr& x, const Shape& shape, Where where);
NodePtr make_transposed_copy(const NodePtr& x, const std::vector<std::int64_t>& axes, Where where);
NodePtr make_permute(const NodePtr& x, const std::vector<std::int64_t>& axes, Where where);
NodePtr make_expand(const NodePtr& x, const Shape& shape, Where where);
NodePtr make_repeated_copy(const NodePtr& x, const Shape& shape, Where where);
NodePtr make_zeros(DType dtype, const Shape& shape, Where where);

// Everything in ops/shape: views, slices, joins, gathers, sequences.
void register_shape_ops();

}  // namespace bitale
