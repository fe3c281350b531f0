// The whole of code generation: an optimised graph of primitives in, a Program out.
#pragma once

#include "codegen/group/group.h"
#include "codegen/group/values.h"
#include "codegen/program.h"
#include "codegen/target.h"
#include "codegen/tune/tuner.h"
#include "graph/ir/graph.h"

namespace bitale {

// What the stages before the kernels decided, for tools and tests that show it.
struct Decisions {
    Values values;
    Grouping grouping;
};

// Choices are made by estimates, or by the tuner where there is one. `decisions` are filled in where asked
// for.
Program generate(const Graph& graph, const Target& target, Tuner* tuner = nullptr,
                 Decisions* decisions = nullptr);

}  // namespace bitale
