// Machine code of kernels, kept on disk: a second process compiles nothing, and does not even open NVRTC.
#pragma once

#include <string>
#include <vector>

#include "runtime/cuda/nvrtc.h"

namespace bitale::cuda {

// NVRTC as the cache knows it. Opened once; from then on a record of the cache tells, as long as the
// library's file is the same.
struct NvrtcIdentity {
    std::string text;                // path, size and time of the file, and the version
    std::vector<int> architectures;  // as nvrtc_architectures()
};
// Throws CompileError where there is no NVRTC, and there was none.
NvrtcIdentity nvrtc_identity();

// What NVRTC is asked for: machine code, or PTX of the newest architecture it knows for a GPU that is newer
// still. `architecture` as sm_90.
std::string machine_target(const std::string& architecture);

struct CompiledUnits {
    std::vector<CompiledModule> modules;  // one per unit
    int compiler_runs = 0;                // the others were in the cache
};
// Throws CompileError.
CompiledUnits find_or_compile(const std::vector<CudaUnit>& units, const std::string& architecture,
                              const std::string& name);

}  // namespace bitale::cuda
