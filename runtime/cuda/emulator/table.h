// The emulator as CUDA's runtime: one GPU whose memory is the host's, whose streams finish every call at
// once.
#pragma once

#include <string>

#include "runtime/cuda/emulator/memory.h"  // IWYU pragma: export
#include "runtime/cuda/tables.h"

namespace bitale::cuda {

const RuntimeTable& emulated_runtime();

// What cudaLibraryLoadData needs beside the bytes: images start with their length, as eight bytes.
std::string emulated_image(const std::string& shared_object);

}  // namespace bitale::cuda
