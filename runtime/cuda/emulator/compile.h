// CUDA text to a shared object for the emulator, by the host's compiler.
#pragma once

#include <string>
#include <vector>

#include "runtime/cuda/emulator/checks.h"

namespace bitale::cuda {

// The names of the kernels in a CUDA text, in their order.
std::vector<std::string> kernels_in(const std::string& text);

// The text as a host compiler takes it: CUDA's words defined in front, behind it an entry for each kernel.
// `watch`: unless nothing, to be compiled with flags that report every access.
std::string emulated_text(const std::string& cuda_text, Watch watch);

struct EmulatedModules {
    std::vector<std::string> images;  // of shared objects, one per text
    int compiler_runs = 0;            // the others were in the cache
};
// To be watched as emulator_watches() says. Throws CompileError, also where there is no host compiler.
EmulatedModules compile_emulated(const std::vector<std::string>& texts);

}  // namespace bitale::cuda
