// Runs the blocks of an emulated launch one after another: a CUDA thread that waits at a barrier or a warp
// operation keeps its stack while others run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/cuda/emulator/counter.h"
#include "runtime/cuda/emulator/module.h"
#include "runtime/cuda/emulator/state.h"

namespace bitale::cuda {

enum class ThreadOrder : std::uint8_t { ascending, descending, random };

// The order in which the threads of a block take their turns, and the blocks theirs, from now on: results
// must not depend on it. Of this process; ascending at first.
void set_thread_order(ThreadOrder order, std::uint64_t seed = 1);

// Returns what went wrong, or nothing: threads of a block at different barriers, a barrier or a warp
// operation that some threads never reach, a shuffle from a lane that takes no part; and what the checker
// finds where emulator_checks(). One launch at a time, whoever calls.
std::string run_blocks(const EmulatedKernel& kernel, const Extent& grid, const Extent& block, int device,
                       void** arguments);

// What was counted of a kernel so far, where emulator_counts().
std::vector<CountedLaunches> counted_launches(const EmulatedKernel& kernel);

// How many accesses the checker has seen so far.
std::uint64_t checked_accesses();

}  // namespace bitale::cuda
