// Machine code of kernels, kept on disk: a second process compiles nothing, and does not even open NVRTC.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/nvrtc.h"

namespace bitale::cuda {

// NVRTC as the cache knows it. Opened once; from then on a record of the cache tells, as long as the
// library's file is the same.
struct NvrtcIdentity {
    std::string text;                // path, size and time of the file, and the version
    std::string version;             // "13.0"
    std::vector<int> architectures;  // as nvrtc_architectures()
};
// Of the NVRTC that is here; where there is none, of the one whose work is in the cache; nothing where there
// is neither. `problem`: why NVRTC cannot be used, asked where it is needed; empty when it can.
using NvrtcProblem = std::string (*)();
std::optional<NvrtcIdentity> known_nvrtc(NvrtcProblem problem = nvrtc_problem);
NvrtcIdentity nvrtc_identity();          // throws CompileError where there is neither
std::vector<int> known_architectures();  // of that NVRTC

// What NVRTC is asked for first: machine code, or PTX of the newest architecture it knows for a GPU that is
// newer still; see targets.h. `architecture` as sm_90.
std::string machine_target(const std::string& architecture);

struct CompiledUnits {
    std::vector<CompiledModule> modules;  // one per unit
    int compiler_runs = 0;                // the others were in the cache
};
// Throws CompileError; without NVRTC, where a kernel is not in the cache.
CompiledUnits find_or_compile(const std::vector<CudaUnit>& units, const std::string& architecture,
                              const std::string& name, NvrtcProblem problem = nvrtc_problem);

}  // namespace bitale::cuda
