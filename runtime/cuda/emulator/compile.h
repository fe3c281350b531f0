// CUDA text to a shared object for the emulator, by the host's compiler.
#pragma once

#include <string>
#include <vector>

namespace bitale::cuda {

// The names of the kernels in a CUDA text, in their order.
std::vector<std::string> kernels_in(const std::string& text);

// The text as a host compiler takes it: CUDA's words defined in front, behind it an entry for each kernel.
// `checked`: to be compiled with flags that report every access.
std::string emulated_text(const std::string& cuda_text, bool checked);

struct EmulatedModules {
    std::vector<std::string> images;  // of shared objects, one per text
    int compiler_runs = 0;            // the others were in the cache
};
// To be checked where emulator_checks(). Throws CompileError, also where there is no host compiler.
EmulatedModules compile_emulated(const std::vector<std::string>& texts);

}  // namespace bitale::cuda
