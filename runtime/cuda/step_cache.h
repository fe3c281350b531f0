// Steps that were captured: by their sizes and the memory they work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/cuda/graphs.h"
#include "runtime/exec/frame.h"

namespace bitale::cuda {

struct CapturedStep {
    std::vector<StepSizes> sizes;
    std::vector<std::int64_t> output_bytes;
    std::vector<void*> pointers;
    bool has_run = false;  // without a graph: libraries have chosen algorithms, kernels are loaded
    // Made when first wanted: the step; with the kernels that end a step of a loop; a whole loop.
    std::unique_ptr<LaunchGraph> call, step, loop;
    double seconds = 0;  // of a step of a loop, as measured last; 0: not yet
    std::uint64_t last_use = 0;
};

class StepCache {
  public:
    // The one for such a frame and such pointers; a new one takes the place of that longest unused.
    CapturedStep& find(const Frame& frame, const std::vector<void*>& pointers);

  private:
    static constexpr std::size_t most_steps = 8;
    std::vector<std::unique_ptr<CapturedStep>> steps_;
    std::uint64_t clock_ = 0;
};

}  // namespace bitale::cuda
