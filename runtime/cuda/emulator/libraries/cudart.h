// What the functions of an emulated libcudart have in common.
#pragma once

#include "runtime/cuda/emulator/graphs.h"
#include "runtime/cuda/emulator/libraries/abi.h"
#include "runtime/cuda/emulator/stream.h"
#include "runtime/cuda/emulator/table.h"

// Exported under its own name, if the version has it.
#define EMULATED extern "C" __attribute__((visibility("default")))

namespace bitale::cuda::abi {

inline const RuntimeTable& runtime() { return emulated_runtime(); }

}  // namespace bitale::cuda::abi
