// What differs between a GPU and the emulator, for the executor that serves both.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bitale/counts.h"
#include "graph/base/memory.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/tables.h"
#include "runtime/cuda/targets.h"
#include "runtime/exec/launcher.h"

namespace bitale::cuda {

struct Images {
    std::vector<std::string> list;  // for cudaLibraryLoadData, one per unit
    int compiler_runs = 0;
    std::vector<KernelResources> resources = {};  // where the compiler tells
    std::string target = {};                      // that of Targets; empty without
};

struct Backend {
    const RuntimeTable* runtime = nullptr;
    int index = 0;                       // of the GPU, as the runtime counts them
    const GraphTable* graphs = nullptr;  // null: there are none, because ...
    const LoopTable* loops = nullptr;
    std::string why_no_graphs, why_no_loops;
    // Whether a process that this one was forked from had begun to use GPUs: none works here then.
    std::function<bool()> began_in_parent;
    std::function<bool()> has_gemm, has_conv;  // asked once a function is built: they may open a library
    // For the current one of `targets`; null: the driver takes what is compiled, or nothing. By several
    // threads at once, and without the device's turn.
    std::function<Images(const Program&, const std::vector<CudaUnit>&)> compile;
    std::shared_ptr<Targets> targets;
    // Operands in the memory of the GPU, in the order of the stream; a bias is null where there is none. The
    // first call for a shape chooses an algorithm and may allocate: it must not be captured into a graph.
    std::function<void(const GemmShape&, const float* a, const float* b, const float* bias, float* c, Stream)>
        gemm;
    std::function<void(const ConvShape&, const ConvData&, Stream)> conv;
    std::function<bool()> separate_buffers;  // each in a block of its own, not in the arena; null: no
    // What was counted of a kernel's launches; null: nothing is.
    std::function<std::vector<LaunchCounts>(KernelFunction)> counts;
    std::function<std::string()> summary;  // for bitale-info
    // What computes a call of gemm or conv, in words, once there was one; null where libraries do not tell.
    std::function<std::string(const GemmShape&)> gemm_algorithm;
    // Of a convolution that a library has computed before, the bytes of workspace; negative: not known.
    std::function<std::int64_t(const ConvShape&)> conv_workspace;
    std::function<bool()> has_multiplied;  // the library of products has its workspace; null: it needs none
    // What is alive of the GPU's memory: blocks of functions and variables, and workspaces of libraries.
    std::shared_ptr<MemoryLedger> ledger = std::make_shared<MemoryLedger>();
    std::function<std::string(const ConvShape&)> conv_algorithm;
};

}  // namespace bitale::cuda
