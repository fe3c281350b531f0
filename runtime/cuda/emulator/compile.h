// CUDA text to a shared object for the emulator, by the host's compiler.
#pragma once

#include <string>
#include <vector>

#include "codegen/program.h"
#include "runtime/cuda/nvrtc.h"

namespace bitale::cuda {

// The text as a host compiler takes it: CUDA's words defined in front, behind it an entry for each kernel.
// `checked`: to be compiled with flags that report every access.
std::string emulated_text(const CudaUnit& unit, const Program& program, bool checked);

struct EmulatedModules {
    std::vector<std::string> images;  // of shared objects, one per unit
    int compiler_runs = 0;            // the others were in the cache
};
// To be checked where emulator_checks(). Throws CompileError, also where there is no host compiler.
EmulatedModules compile_emulated(const std::vector<CudaUnit>& units, const Program& program);

}  // namespace bitale::cuda
