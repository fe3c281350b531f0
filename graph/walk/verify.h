// verify: what must hold of a graph between any two passes. A failure is an InternalError.
#pragma once

#include "graph/ir/graph.h"

namespace bitale {

// Operand counts fit the ops, types are what the ops infer, no operand is null, inputs are distinct leaves,
// every input leaf that the roots depend on is an input of the graph, updates fit their targets.
void verify(const Graph& graph);

// Only leaves, maps, views and reduces are left.
void verify_primitive(const Graph& graph);
// No two nodes have the same structure.
void verify_merged(const Graph& graph);

}  // namespace bitale
