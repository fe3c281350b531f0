// What NVRTC made of a program, as files.
#pragma once

#include <map>
#include <string>

#include "codegen/program.h"

namespace bitale::cuda {

// Writes kernels_N.cu for each unit; .ptx, .cubin and resources.txt as NVRTC makes them, else nvrtc.txt with
// the reason; kernels_N.sass by nvdisasm or cuobjdump, from $CUDA_HOME/bin or PATH, else sass.txt says that
// neither is there. `architecture` as sm_90. Needs no GPU. Returns what the machine code takes, in words, by
// entry.
std::map<std::string, std::string> dump_cuda(const Program& program, const std::string& architecture,
                                             const std::string& folder);

}  // namespace bitale::cuda
