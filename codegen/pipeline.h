// The whole of code generation: an optimised graph of primitives in, a Program out.
#pragma once

#include "codegen/program.h"
#include "codegen/target.h"
#include "graph/ir/graph.h"

namespace bitale {

Program generate(const Graph& graph, const Target& target);

}  // namespace bitale
