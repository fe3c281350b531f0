// Whether functions can run on a GPU here.
#pragma once

#include <string>

namespace bitale::cuda {

// Why there is no usable GPU, as one sentence with its cure; empty when there is one. Opens the CUDA runtime,
// and NVRTC where the runtime finds a GPU.
std::string why_unavailable();

}  // namespace bitale::cuda
