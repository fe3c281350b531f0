// The devices "cuda", "cuda:1" and so on, GPUs, and "emulator", the same executor on the CPU.
#pragma once

#include <memory>

#include "runtime/cuda/backend.h"
#include "runtime/exec/device.h"

namespace bitale {

namespace cuda {

// What the two devices run on, also for programs that probe a GPU's parts by themselves; `index`: the GPU's
// number. Handles and workspaces of libraries belong to the backend.
Backend cuda_backend(int index = 0);
Backend emulator_backend(int index = 0);

}  // namespace cuda

// Opens no library before the first function; only where cuda::why_unavailable(index) has no reason.
std::unique_ptr<Device> make_cuda_device(int index);
std::unique_ptr<Device> make_emulator_device(int index);

}  // namespace bitale
