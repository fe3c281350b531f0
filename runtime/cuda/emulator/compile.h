// CUDA text to a shared object for the emulator, by the host's compiler.
#pragma once

#include <string>
#include <vector>

#include "codegen/program.h"
#include "runtime/cuda/nvrtc.h"

namespace bitale::cuda {

// The text as a host compiler takes it: CUDA's words defined in front, behind it an entry for each kernel.
std::string emulated_text(const CudaUnit& unit, const Program& program);

struct EmulatedModules {
    std::vector<std::string> images;  // of shared objects, one per unit
    int compiler_runs = 0;            // the others were in the cache
};
// Throws CompileError, also where there is no host compiler.
EmulatedModules compile_emulated(const std::vector<CudaUnit>& units, const Program& program);

}  // namespace bitale::cuda
