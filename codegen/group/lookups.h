// Gradients of lookups: scatters into tables of many rows, by a stable sort of the indices.
#pragma once

#include "codegen/target.h"
#include "graph/ir/graph.h"

namespace bitale {

// Where every row of a table would look at all indices, one sort of them and a sum over each run of equal
// ones take work that is linear in the indices: on a CPU. Terms are added in the same order, so no bit
// changes.
void sort_lookups(Graph& graph, const Target& target);

}  // namespace bitale
