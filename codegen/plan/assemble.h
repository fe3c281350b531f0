// Assembles the Program: buffers, kernels by level, library calls, copies into shared storage.
#pragma once

#include "codegen/group/group.h"
#include "codegen/program.h"

namespace bitale {

Program assemble(const Graph& graph, const Values& values, const Grouping& grouping, const Target& target);

}  // namespace bitale
