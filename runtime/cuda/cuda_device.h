// The devices "cuda", a GPU, and "emulator", the same executor on the CPU.
#pragma once

#include <memory>

#include "runtime/cuda/backend.h"
#include "runtime/exec/device.h"

namespace bitale {

namespace cuda {

// What the two devices run on, also for programs that probe a GPU's parts by themselves.
Backend cuda_backend();
Backend emulator_backend();

}  // namespace cuda

// Opens no library before the first function; only where cuda::why_unavailable() has no reason.
std::unique_ptr<Device> make_cuda_device();
std::unique_ptr<Device> make_emulator_device();

}  // namespace bitale
