// The whole of code generation: an optimised graph of primitives in, a Program out.
#pragma once

#include "codegen/program.h"
#include "codegen/target.h"
#include "codegen/tune/tuner.h"
#include "graph/ir/graph.h"

namespace bitale {

// Choices are made by estimates, or by the tuner where there is one.
Program generate(const Graph& graph, const Target& target, Tuner* tuner = nullptr);

}  // namespace bitale
