// Steps that were captured: by their sizes and the memory they work on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/cuda/graphs.h"
#include "runtime/exec/frame.h"

namespace bitale::cuda {

// One block copies so much at the end of a step in the time of a node; more is shared out, by one node more.
constexpr std::int64_t small_results = std::int64_t{8} << 10;

// Steps in the body of a WHILE node: a turn costs as much as several nodes, wherefore small steps share one.
std::int64_t most_steps_of_turn(std::size_t nodes_of_step);

struct CapturedStep {
    std::int64_t result_bytes() const;
    // Of the step alone, without the kernels that end a step of a loop; 0: not known before it is captured.
    std::size_t nodes() const;

    std::vector<StepSizes> sizes;
    std::vector<std::int64_t> output_bytes;
    std::vector<void*> pointers;
    bool has_run = false;  // without a graph: libraries have chosen algorithms, kernels are loaded
    // Made when first wanted: the step; with the kernels that end a step of a loop; a whole loop, one step a
    // turn; several.
    std::unique_ptr<LaunchGraph> call, step, loop, turns;
    std::int64_t steps_of_turn = 1;  // of `turns`; chosen before that is made, and kept
    double seconds = 0;              // of a step of a loop, as measured last; 0: not yet
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
