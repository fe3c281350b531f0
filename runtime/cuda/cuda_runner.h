// Runs a Program on a GPU: uploads arguments, places buffers, launches steps on one stream, reads the error
// word.
#pragma once

#include <memory>
#include <vector>

#include "runtime/cuda/backend.h"
#include "runtime/cuda/context.h"
#include "runtime/exec/device.h"
#include "runtime/exec/frame.h"

namespace bitale::cuda {

class CudaRunner : public Executable {
  public:
    CudaRunner(const Build& build, Context& context, const Backend& backend);

    std::vector<Array> run(std::span<const Array> arguments) override;
    std::vector<Array> loop(const LoopCall& call) override;
    std::int64_t arena_bytes() const override { return frames_.most_bytes(); }
    int compiler_runs() const override { return compiler_runs_; }
    std::vector<Profile::Row> profile() const override;

  private:
    struct StepPlan {
        const Step* step = nullptr;
        std::vector<KernelFunction> phases;  // of a kernel
        std::int64_t calls = 0;
        double seconds = 0;
    };

    void load(const Backend& backend);
    void plan(const Region& region, std::vector<StepPlan>& plans);
    void bind(std::span<const Array> arguments);
    void set_scalar(std::int64_t value);
    void begin(const Frame& frame);
    void use(const Frame& frame);
    void step(const Frame& frame);
    void run_steps(std::vector<StepPlan>& plans, const std::vector<StepSizes>& sizes);
    void launch(const StepPlan& plan, const StepSizes& sizes);
    void launch_kernel(const StepPlan& plan, const StepSizes& sizes);
    void check_errors();  // throws IndexError when a check has failed
    void count_versions();
    std::int64_t bytes_of_buffer(std::size_t buffer) const;  // of this call
    void place_separately(const Frame& frame);
    std::string biggest_buffers(const Frame& frame) const;

    std::shared_ptr<const Program> program_;
    Arguments arguments_;
    Frames frames_;
    Context& context_;
    const Backend& backend_;
    const bool separate_buffers_;
    int compiler_runs_ = 0;
    const bool profile_;

    std::vector<std::vector<KernelFunction>> kernels_;  // of each kernel, one per phase
    std::vector<StepPlan> once_, body_;
    std::vector<std::unique_ptr<DeviceBlock>> blocks_;  // of each buffer, but for the arena's and shared ones
    std::vector<void*> pointers_;                       // of each buffer
    std::vector<const void*> argument_data_;            // on the host
    std::vector<std::int64_t> symbols_;
    std::vector<std::size_t> input_buffers_, output_buffers_;
    std::size_t errors_buffer_;
    std::vector<char> launch_arguments_;
    Event first_ = nullptr, last_ = nullptr;  // for the profile

    DeviceBlock arena_;
    std::shared_ptr<const Placement> placement_;
    std::vector<std::size_t> once_shared_;
    std::vector<std::uint64_t> once_versions_;
    bool once_done_ = false;
};

}  // namespace bitale::cuda
