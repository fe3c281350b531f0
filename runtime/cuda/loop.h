// Many steps of a function, one after another on the GPU without the host between them.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/cuda/cuda_runner.h"

namespace bitale::cuda {

// The state that the GPU keeps during a loop, and the launches of its steps. One per runner: its memory stays
// in place, so what was captured for it serves the next loop too.
class CudaRunner::Loop {
  public:
    explicit Loop(CudaRunner& runner);

    // Memory for the results of so many steps. `bytes` of one step, for each result.
    void begin(const LoopCall& call, const std::vector<std::int64_t>& bytes);
    // Runs the steps [first, end), all with this frame and no other. Returns the number of steps that are
    // done since begin(): less than `end` when a step failed, the loop was asked to stop, or others wait.
    std::int64_t run(const Frame& frame, std::int64_t first, std::int64_t end);
    bool ends_early() const {
        return call_->stopped() || (call_->lock && call_->lock->wanted()) || context_.demand().is_there();
    }
    // What it takes for so many steps and results, beside the results themselves.
    static std::int64_t bytes(std::int64_t steps, std::size_t results);
    const void* collected(std::size_t i) const { return results_[i]->data(); }

  private:
    enum Word : std::size_t { stop, progress };

    // Of these steps, what is launched and waited for at once.
    std::int64_t run_slice(const Frame& frame, CapturedStep& step, std::int64_t first, std::int64_t end);
    std::int64_t most_of_slice(const CapturedStep& step) const;
    void set_up(const Frame& frame, std::int64_t first, std::int64_t end);
    void end_step(const CapturedStep& step, LoopKernel kernel, Stream stream, ConditionalHandle handle = 0,
                  std::int64_t steps = 1);
    bool capture_turns(const Frame& frame, CapturedStep& step, std::unique_ptr<LaunchGraph>& graph,
                       std::int64_t steps);
    bool issue_turns(const Frame& frame, CapturedStep& step, std::int64_t end);
    void issue(const Frame& frame, CapturedStep& step, std::int64_t end);
    std::int64_t follow(std::int64_t until, double seconds_of_step = 0);
    void end_early();

    CudaRunner& runner_;
    Context& context_;
    MappedWords words_;
    DeviceBlock state_, values_;
    std::vector<std::unique_ptr<DeviceBlock>> results_;
    std::vector<char> state_text_;  // as it is uploaded
    const LoopCall* call_ = nullptr;
    std::int64_t first_ = 0, issued_ = 0;  // of this slice: its first step, and that which is launched next
    std::chrono::steady_clock::time_point begun_;
};

}  // namespace bitale::cuda
