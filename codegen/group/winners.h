// Gradients of filters behind max-pooling: over all places of the convolution's result, of which most have no
// gradient, or through the winners of the windows, at places known only at run time.
#pragma once

#include <string>

#include "codegen/target.h"
#include "graph/ir/graph.h"

namespace bitale {

// Rewrites those for which the winners are worth it. Shapes alone decide, and whether there is a library, so
// that generated code adds up in the same order on every device.
void choose_winners(Graph& graph, const Target& target);

// Why such a gradient takes the form that it has, for the report; empty for any other node.
std::string why_winners(const Node& node, const Target& target);

}  // namespace bitale
