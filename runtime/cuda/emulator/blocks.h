// Runs the blocks of an emulated launch one after another: each CUDA thread is a fiber that gives way at
// barriers and warp operations.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/cuda/emulator/state.h"

namespace bitale::cuda {

enum class ThreadOrder : std::uint8_t { ascending, descending, random };

// The order in which the threads of a block take their turns, and the blocks theirs, from now on: results
// must not depend on it. Of this process; ascending at first.
void set_thread_order(ThreadOrder order, std::uint64_t seed = 1);

// What the kernels of this thread read their launch from.
EmulatorState& emulator_state();

// Calls `body` once for each thread of each block. Returns what went wrong, or nothing: threads of a block at
// different barriers, a barrier or a warp operation that some threads never reach.
std::string run_blocks(const Extent& grid, const Extent& block, const std::function<void()>& body);

}  // namespace bitale::cuda
