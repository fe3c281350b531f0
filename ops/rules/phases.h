// The phases of rewriting, by name and in order.
#pragma once

#include <unordered_set>

#include "graph/ir/graph.h"

namespace bitale {

// canonicalize, then stabilize, the graph under the roots. `barriers` keep their identity and are not looked
// through (what a gradient is taken with respect to).
Nodes canonicalize_and_stabilize(const Nodes& roots, const std::unordered_set<const Node*>& barriers);

// import -> canonicalize -> stabilize -> decompose -> specialize: only leaves, maps, views and reduces are
// left.
void optimize(Graph& graph);

}  // namespace bitale
