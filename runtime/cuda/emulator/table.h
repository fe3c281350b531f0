// The emulator as CUDA's runtime: one GPU whose memory is the host's, whose streams finish every call at
// once.
#pragma once

#include <string>

#include "runtime/cuda/tables.h"

namespace bitale::cuda {

const RuntimeTable& emulated_runtime();

// The memory of the emulated GPU; allocations beyond it fail as on a real one. 0: no limit.
void set_emulated_memory(std::int64_t bytes);

// What cudaLibraryLoadData needs beside the bytes: images start with their length, as eight bytes.
std::string emulated_image(const std::string& shared_object);

}  // namespace bitale::cuda
