// Which engine a convolution was given, on disk: another process takes the same, whatever cuDNN would propose
// to it, and its report can name it.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "runtime/cuda/cudnn_graph.h"
#include "runtime/exec/launcher.h"

namespace bitale::cuda {

class EngineCache {
  public:
    // `identity`: all that engines depend on beside the shape: cuDNN, the GPU, the driver.
    explicit EngineCache(std::string identity) : identity_(std::move(identity)) {}

    // Nothing where the cache is off, or knows nothing of the shape. Whether the engine still makes a plan is
    // for the caller to see.
    std::optional<ConvEngine> find(const ConvShape& shape) const;
    void keep(const ConvShape& shape, const ConvEngine& engine) const;

  private:
    std::string identity_;
};

// Of a library, by its version and file, and the runtime's GPU `index`.
std::string engine_identity(const CudnnTable& library, const RuntimeTable& runtime, int index);

}  // namespace bitale::cuda
