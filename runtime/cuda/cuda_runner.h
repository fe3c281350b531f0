// Runs a Program on a GPU: uploads arguments, places buffers, launches steps, reads the error word. Waits
// for the GPU where results are wanted, and nowhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cuda/compare.h"
#include "runtime/cuda/demand.h"
#include "runtime/cuda/gate.h"
#include "runtime/cuda/graphs.h"
#include "runtime/cuda/loading.h"
#include "runtime/cuda/step_cache.h"
#include "runtime/exec/device.h"
#include "runtime/exec/frame.h"
#include "runtime/exec/once.h"
#include "runtime/exec/stacked.h"
#include "runtime/memory/limit.h"

namespace bitale::cuda {

class CudaRunner : public Executable {
  public:
    // All kernels that a function has, and those that its loops need.
    struct Kernels {
        std::vector<CudaUnit> units;
        LoadedUnits loaded;
        std::vector<std::string> images_to_compare;  // with launches=compare
        const LoopKernels* of_loops = nullptr;
    };
    static Kernels compiled(const Build& build, Gpu& gpu, Turn* turn);

    CudaRunner(const Build& build, Gpu& gpu, Kernels kernels);
    // For who has the GPU alone.
    CudaRunner(const Build& build, Gpu& gpu) : CudaRunner(build, gpu, compiled(build, gpu, nullptr)) {}
    ~CudaRunner() override;

    std::vector<Array> run(std::span<const Array> arguments) override;
    std::vector<Array> loop(const LoopCall& call) override;  // loop.cpp
    void drop_arena() override;
    std::int64_t arena_bytes() const override { return frames_.most_bytes(); }
    OwnMemory own_memory(const Program& program, const Frame& frame, const Frame* before) const override;
    std::int64_t workspace_alive(const Program& program) const override;
    MemoryLedger* ledger() const override { return &context_.ledger(); }
    std::vector<std::int64_t> last_symbols() const override { return last_symbols_; }
    int compiler_runs() const override { return compiler_runs_; }
    std::string resources(const std::string& entry) const override;
    std::string library_choice(const Step& step) const override;
    std::vector<Profile::Row> profile() const override;
    std::vector<LaunchCounts> counts() const override;
    std::string launches() const override;

  private:
    // Steps of a loop until others wait for the device, or for what it holds: how many. Results are added to
    // `stacked`, which the first call makes.
    std::int64_t run_steps(const LoopCall& call, std::optional<StackedResults>& stacked);

    struct StepPlan {
        explicit StepPlan(Context& context) : begins(context), ends(context) {}

        const Step* step = nullptr;
        std::vector<KernelFunction> phases;  // of a kernel
        OwnedEvent begins, ends;             // of the profile
        std::int64_t calls = 0;
        double seconds = 0;
    };
    class Loop;

    void find_entries(Kernels kernels);
    void plan(const Region& region, std::vector<StepPlan>& plans);
    void fill_constant_buffers();

    // What a call needs in the memory of the GPU: arguments, results, shared variables, the arena. Throws
    // OutOfMemory.
    void place(const Frame& frame, std::span<const Array> arguments);
    void use(const Frame& frame);
    void place_separately(const Frame& frame);
    std::int64_t bytes_of_buffer(std::size_t buffer) const;
    // Throws OutOfMemory where a call, or a loop of `steps` if that is not 0, does not fit the function's
    // limit; with one, blocks that are larger than they need to be go.
    void check_limit(const Frame& frame, std::span<const Array> arguments, std::int64_t steps);
    void admit(const Frame& frame, std::span<const Array> arguments, std::int64_t steps);

    // The only place where steps are put into a stream, to run or to be captured.
    void launch(const StepPlan& plan, const StepSizes& sizes, Stream stream);
    void launch(const KernelStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream);
    void launch(const GemmStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream);
    void launch(const ConvStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream);
    void launch(const CopyStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream);
    void launch(const RoutineStep& step, const StepPlan& plan, const StepSizes& sizes, Stream stream);
    // Errors say in front which step it is. `compare`: with launches=compare, given words for the call.
    void call_library(const StepPlan& plan, const StepSizes& sizes, Stream stream,
                      const std::function<void()>& call,
                      const std::function<void(const LaunchWords&)>& compare);
    void note_call(const StepPlan& plan, const StepSizes& sizes);  // for library_choice()
    std::vector<ComparedBuffer> compared_buffers(const Step& step) const;
    void launch_body(const Frame& frame, Stream stream);
    // Between events. `again`: the same has run before, so nothing is loaded, chosen or allocated any more
    // and the stream can be held until all is there; then the times hold no launches.
    void launch_timed(std::vector<StepPlan>& plans, const std::vector<StepSizes>& sizes, bool again);
    double seconds_between(const OwnedEvent& first, const OwnedEvent& last);
    void execute(const Frame& frame);  // one step, as the most that one launch can hold

    std::string how_launched() const;
    Graphs::Most most() const;  // for this function
    // Fills `graph` if it is empty; false, and never tried again, where that cannot be done.
    template <class F>
    bool captured(std::unique_ptr<LaunchGraph>& graph, Graphs::Most without, F&& capture);
    void note(const CapturedStep& step);  // for launches()

    bool has_errors() const { return errors_buffer_ < pointers_.size(); }
    void* errors() const { return pointers_[errors_buffer_]; }
    void* pointer(int buffer) const { return pointers_[static_cast<std::size_t>(buffer)]; }
    void clear_errors();  // those of a call that nobody waited for
    void check_errors();  // waits; throws IndexError when a check has failed
    void throw_error(const std::int64_t* words);
    void watch_errors();
    void count_versions() noexcept;
    void give_up_step() noexcept;
    void prepare_to_watch();

    std::optional<NeedsGpu> leaving_;  // from the destructor's begin until all that follows is gone
    const Build build_;
    std::shared_ptr<const Program> program_;
    FunctionLimit function_limit_;
    Arguments arguments_;
    Frames frames_;
    Gpu& gpu_;
    Context& context_;
    const LoopKernels& loop_kernels_;
    std::vector<OwnedLibrary> libraries_;  // whose kernels the plans below launch
    int compiler_runs_ = 0;
    std::vector<KernelResources> resources_;
    const bool separate_buffers_;  // the arena's too are blocks of their own
    const bool profile_;
    Gate gate_;  // of the profile
    OwnedEvent nothing_begins_, nothing_ends_;

    std::vector<std::vector<KernelFunction>> kernels_;  // of each kernel, one per phase
    std::vector<StepPlan> once_, body_;
    std::vector<std::unique_ptr<DeviceBlock>> blocks_;  // of each buffer, but for the arena's and shared ones
    std::vector<void*> pointers_;                       // of each buffer
    std::vector<const void*> argument_data_;            // on the host
    std::vector<std::int64_t> symbols_, last_symbols_;
    std::vector<std::size_t> input_buffers_, output_buffers_;
    std::size_t errors_buffer_;
    std::vector<char> launch_arguments_;
    std::unique_ptr<Comparison> comparison_;  // with launches=compare
    std::shared_ptr<CallCheck> call_check_;   // made by the first call that is not waited for

    StepCache steps_;
    Graphs::Most limit_ = Graphs::Most::loop;  // what turned out to be possible
    std::string why_limited_;
    bool launched_ = false;
    bool committing_ = false;  // a step was launched in part, and that part writes shared variables
    std::map<const Step*, std::vector<StepSizes>> library_calls_;  // the sizes that were called, some of them
    std::size_t nodes_ = 0;                                        // of the step last launched as a graph
    std::unique_ptr<Loop> loop_;                                   // made by the first loop

    DeviceBlock arena_;
    std::shared_ptr<const Placement> placement_;
    OnceValues once_values_;
};

template <class F>
bool CudaRunner::captured(std::unique_ptr<LaunchGraph>& graph, Graphs::Most without, F&& capture) {
    if (graph) return true;
    try {
        graph = capture();
        return true;
    } catch (const CaptureError& e) {
        limit_ = without;
        why_limited_ = e.what();
        return false;
    }
}

}  // namespace bitale::cuda
