// Gradients of filters behind max-pooling: over all places of the convolution's result, of which most have no
// gradient, or through the winners of the windows, at places known only at run time.
#pragma once

#include <string>

#include "codegen/target.h"
#include "codegen/tune/tuner.h"
#include "graph/ir/graph.h"

namespace bitale {

// Rewrites those for which the winners are worth it. Shapes alone decide, and whether there is a library, so
// that generated code adds up in the same order on every device; but where there is a tuner, measurements do.
void choose_winners(Graph& graph, const Target& target, Tuner* tuner);

// Why such a gradient takes the form that it has, for the report; empty for any other node.
std::string why_winners(const NodePtr& node, const Target& target, Tuner* tuner);

}  // namespace bitale
