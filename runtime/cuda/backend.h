// What differs between a GPU and the emulator, for the executor that serves both.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/tables.h"
#include "runtime/exec/launcher.h"

namespace bitale::cuda {

struct Images {
    std::vector<std::string> list;  // for cudaLibraryLoadData, one per unit
    int compiler_runs = 0;
};

struct Backend {
    const RuntimeTable* runtime = nullptr;
    std::function<bool()> has_gemm;  // asked once a function is built: it may open a library
    std::function<Images(const Program&, const std::vector<CudaUnit>&)> compile;
    // Operands in the memory of the GPU, in the order of the stream.
    std::function<void(const GemmShape&, const float* a, const float* b, float* c, Stream)> gemm;
    std::function<std::string()> summary;  // for bitale-info
};

}  // namespace bitale::cuda
