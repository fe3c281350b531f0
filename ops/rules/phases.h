// The phases of rewriting, by name and in order.
#pragma once

#include <unordered_set>

#include "graph/ir/graph.h"

namespace bitale {

// canonicalize, then stabilize, the graph under the roots. `barriers` keep their identity and are not looked
// through (what a gradient is taken with respect to).
Nodes canonicalize_and_stabilize(const Nodes& roots, const std::unordered_set<const Node*>& barriers);

// Error, with names like it, for a name in `disable=` that is no rule, tag, pass or library, or that nothing
// can be compiled without. Whoever builds a function or takes a gradient asks once.
void check_disabled();

// import -> canonicalize -> stabilize -> decompose -> specialize: only leaves, maps, views and reduces are
// left.
void optimize(Graph& graph);

}  // namespace bitale
