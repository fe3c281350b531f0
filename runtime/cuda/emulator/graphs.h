// CUDA graphs on the emulator: what is captured is recorded, a launch replays it. Stricter than CUDA where
// CUDA would only be slow or undefined.
#pragma once

#include <string>

#include "runtime/cuda/tables.h"

namespace bitale::cuda {

const GraphTable& emulated_graphs();
const LoopTable& emulated_loops();

// For the state of a launch: what a kernel calls as cudaGraphSetConditional.
void set_emulated_condition(ConditionalHandle handle, unsigned value);
// What was wrong with such calls of this thread since the last question; empty: nothing.
std::string condition_problem();

}  // namespace bitale::cuda
