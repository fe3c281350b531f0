// The emulator as CUDA's runtime: GPUs whose memory is the host's. What is put into a stream runs when
// somebody waits for it; without a stream (null), at once.
#pragma once

#include <string>

#include "runtime/cuda/emulator/memory.h"  // IWYU pragma: export
#include "runtime/cuda/tables.h"

namespace bitale::cuda {

const RuntimeTable& emulated_runtime();

// The next launch of a kernel with this in its name fails, as a bad access does on a GPU.
void plant_failure(const std::string& kernel);

}  // namespace bitale::cuda
