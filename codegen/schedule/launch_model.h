// The time of a launch on a GPU, predicted from the kernel IR: what candidates for a schedule are compared
// by.
#pragma once

#include <cstdint>
#include <set>

#include "codegen/gpu_facts.h"
#include "codegen/kernel/ir.h"
#include "codegen/program.h"
#include "graph/ir/graph.h"

namespace bitale {

// time = start of the launch + the largest of
//   chain:  waves x (loads one after another x latency + dependent operations) of the slowest thread
//   issue:  instructions of all warps / what the multiprocessors in use begin each cycle
//   memory: sectors of all warps / rate of the L2; bytes of places that exceed it / rate of the memory
// Lengths are typical ones, arguments that are numbers are 0, variables of loops have their first value, and
// the 32 addresses of a warp are evaluated one by one. The compiler is assumed to have as many loads of a
// loop without barriers in flight as it unrolls. `numbers`: the symbols of these arguments.
PredictedLaunch predict_launch(const KernelIR& kernel, const Phase& phase, const GpuFacts& gpu,
                               const std::set<std::uint64_t>& numbers = {});

// The symbols of a graph's arguments that are numbers, such as the index of a minibatch.
std::set<std::uint64_t> numbers_of(const Graph& graph);

}  // namespace bitale
