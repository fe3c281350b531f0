// Nodes of a graph replaced by others that compute the same.
#pragma once

#include <functional>

#include "graph/ir/graph.h"

namespace bitale {

// `replacement` gives what takes the place of a node, whose operands have been replaced already, or null. It
// gets the node's name and origins.
void replace_nodes(Graph& graph, const std::function<NodePtr(const NodePtr&)>& replacement);
// Likewise; the replacement also gets the node as the graph had it.
void replace_nodes(Graph& graph,
                   const std::function<NodePtr(const NodePtr&, const Node& before)>& replacement);

}  // namespace bitale
