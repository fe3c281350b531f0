// Gradients of lookups: scatters into tables, by a stable sort of the indices or one after another.
#pragma once

#include "codegen/target.h"
#include "graph/ir/graph.h"

namespace bitale {

// Where every row of a table would look at all indices, one sort of them and a sum over each run of equal
// ones take work that is linear in the indices: on a CPU. Into tables that stay in a cache a task adds each
// term where it belongs. Terms are added in the order of the indices either way.
void sort_lookups(Graph& graph, const Target& target);

}  // namespace bitale
