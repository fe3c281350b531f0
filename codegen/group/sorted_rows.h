// Transposed copies of what is sorted along another axis than the last.
#pragma once

#include "codegen/target.h"
#include "graph/ir/graph.h"

namespace bitale {

// A task sorts a row at a time. The elements of a row of a transpose lie in as many cache lines as there are,
// and each of these would be loaded again for each of the rows beside it. For vectors only: the threads of a
// block have rows that lie beside each other.
void copy_sorted_rows(Graph& graph, const Target& target);

}  // namespace bitale
