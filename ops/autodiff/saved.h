// What a function keeps for its gradients in fewer bytes: FunctionOptions::activations.
#pragma once

#include "graph/ir/graph.h"

namespace bitale {

// x as code generation stores it until a gradient reads it; "dtype" (DType): of a half type, or of x.
const Op* saved_op();

// The graph with gradients that read what they need of the forward computation through saved_op(): float32
// values of at least two axes as `dtype`, comparisons as bytes. Values that take little to compute from what
// is saved, or from leaves, are computed again. What the forward computation itself reads stays float32.
// The same graph gives the same result on every device; a second time changes nothing.
void save_activations(Graph& graph, DType dtype);

}  // namespace bitale
