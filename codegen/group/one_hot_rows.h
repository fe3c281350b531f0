// Sums over the rows in which a one-hot matrix has its ones: gradients of dot(one_hot(k, n), table).
#pragma once

#include "codegen/target.h"
#include "graph/ir/graph.h"

namespace bitale {

// dot(transpose(one_hot(k, n)), g) adds each row of g to that row of the result whose number k has. Where
// sorting k is faster than looking at it for each row (lookups.h), the product becomes such a scatter.
// Numbers that are no row add nothing. Sums of one-hot arrays become counts (one_hot_counts.h). Not under
// math=strict, which asks for products with zero, nor with disable=one-hot-sums.
void add_one_hot_rows(Graph& graph, const Target& target);

}  // namespace bitale
