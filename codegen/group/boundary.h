// Boundary: tensors of many channels whose order in memory is the user's, where convolutions want another.
#pragma once

#include "codegen/group/values.h"
#include "graph/ir/graph.h"

namespace bitale {

// Convolutions and their gradients run in lanes of channels, which lie side by side in what is computed
// (layout.h). What is given with its channels apart, or has to be stored so, cannot: between it and the
// convolution there comes a value that only moves elements: a staged copy of what is read; on a CPU, in place
// of a result, the convolution itself. Once storage is decided.
void reorder_boundary(Values& values, const Graph& graph, const Target& target);

}  // namespace bitale
