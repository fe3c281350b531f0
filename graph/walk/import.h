// import: the user's graph becomes a function's own.
#pragma once

#include "graph/ir/graph.h"
#include "graph/walk/interner.h"

namespace bitale {

// Replaces the nodes of the graph by fresh ones in which equal structure is one node that holds the sorted
// list of the statements it stands for; the interner then knows all of them. Leaves merge by identity (shared
// variables by their storage), constants by value; input leaves stay the same nodes. Linear and iterative.
void import(Graph& graph, Interner& interner);

}  // namespace bitale
