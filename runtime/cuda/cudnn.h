// Convolutions by cuDNN.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "graph/base/memory.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/engine_cache.h"
#include "runtime/cuda/tables.h"
#include "runtime/exec/launcher.h"

namespace bitale::cuda {

// Convolutions of one GPU, that of the thread that makes it; the plan of each shape is made once and kept in
// memory. Calls are serialised by the device. What it holds of the GPU is never given back: CUDA may be gone
// before us.
class Cudnn {
  public:
    // `open_nvrtc` is called before cuDNN plans with engines that it compiles: it finds NVRTC by name, where
    // somebody has opened it. Throws DeviceError when the library does not start.
    Cudnn(const CudnnTable& library, const RuntimeTable& runtime, MemoryLedger& ledger, EngineCache engines,
          std::function<void()> open_nvrtc);
    Cudnn(const Cudnn&) = delete;
    Cudnn& operator=(const Cudnn&) = delete;

    // The first call for a shape makes its plan and may allocate: it must not be captured into a graph, later
    // ones may. Throws DeviceError where cuDNN has no plan that is exact enough.
    void convolve(const ConvShape& shape, const ConvData& data, Stream stream);

    // What computes this shape, for the report; empty before the first call for it.
    std::string choice(const ConvShape& shape) const;
    // Bytes that this shape works in; negative before the first call for it.
    std::int64_t workspace_of(const ConvShape& shape) const;

    static constexpr std::int64_t most_workspace = std::int64_t{256} << 20;

  private:
    struct Known {
        ConvShape shape;
        ConvPlan plan;
        void* workspace = nullptr;
        bool from_disk = false;
    };
    const Known& plan_of(const ConvShape& shape);
    std::optional<ConvPlan> plan_from_disk(const ConvShape& shape);
    ConvPlan new_plan(const ConvShape& shape);
    void* workspace(std::int64_t bytes);
    void require(int status, const char* what) const;

    const CudnnTable& library_;
    const RuntimeTable& runtime_;
    MemoryLedger& ledger_;
    const EngineCache engines_;
    const std::function<void()> open_nvrtc_;
    DnnHandle* handle_ = nullptr;
    std::vector<Known> known_;
    // The newest is the largest. Captured graphs go on using the others.
    struct Workspace {
        void* data = nullptr;
        std::int64_t bytes = 0;
    };
    std::vector<Workspace> workspaces_;
};

}  // namespace bitale::cuda
