// What the emulator has counted, for reports.
#pragma once

#include <vector>

#include "bitale/counts.h"
#include "runtime/cuda/types.h"

namespace bitale::cuda {

// Of a kernel's launches, those that nobody has waited for included: they run now. Accesses of one statement
// are one entry, in the order of the code.
std::vector<LaunchCounts> emulated_counts(KernelFunction kernel);

}  // namespace bitale::cuda
