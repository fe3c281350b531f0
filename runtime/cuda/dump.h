// What NVRTC made of a program, as files.
#pragma once

#include <string>

#include "codegen/program.h"

namespace bitale::cuda {

// Writes kernels_N.cu, .ptx and .cubin for each unit, and resources.txt; kernels_N.sass by nvdisasm or
// cuobjdump, from $CUDA_HOME/bin or PATH, else sass.txt says that neither is there. `architecture` as sm_90.
// Throws CompileError. Needs no GPU.
void dump_cuda(const Program& program, const std::string& architecture, const std::string& folder);

}  // namespace bitale::cuda
