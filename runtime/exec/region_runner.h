// Runs a Program: binds arguments, places buffers, walks the steps, reads the error word, commits.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "runtime/exec/device.h"
#include "runtime/exec/frame.h"
#include "runtime/exec/launcher.h"
#include "runtime/storage/arena.h"

namespace bitale {

class RegionRunner : public Executable {
  public:
    RegionRunner(const Build& build, std::unique_ptr<Launcher> launcher, int compiler_runs);

    std::vector<Array> run(std::span<const Array> arguments) override;
    std::vector<Array> loop(const LoopCall& call) override;
    std::int64_t arena_bytes() const override { return frames_.most_bytes(); }
    int compiler_runs() const override { return compiler_runs_; }
    std::vector<Profile::Row> profile() const override;

  private:
    struct StepPlan {
        const Step* step = nullptr;
        std::size_t first_pointer = 0;  // into step_pointers_
        std::int64_t calls = 0;
        double seconds = 0;
    };
    struct Block {
        alignas(64) std::array<std::int64_t, 16> words{};  // the error word, and the tail that may be read
    };

    void plan(const Region& region, std::vector<StepPlan>& plans);
    void begin();                   // pointers of shared variables and constants
    void use(const Frame& frame);   // pointers into the arena; runs `once` where it is out of date
    void step(const Frame& frame);  // one run of the body; throws IndexError before anything is committed
    bool run_steps(std::vector<StepPlan>& plans, const std::vector<StepSizes>& sizes);
    void launch(const StepPlan& plan, const StepSizes& sizes);
    void count_versions();
    [[noreturn]] void fail() const;

    std::shared_ptr<const Program> program_;
    Arguments arguments_;
    std::unique_ptr<Launcher> launcher_;
    Frames frames_;
    const int compiler_runs_;
    const bool profile_;

    std::vector<StepPlan> once_, body_;
    std::vector<void*> pointers_;       // of each buffer
    std::vector<void*> step_pointers_;  // of each step's buffers, one after another
    std::vector<bool> updated_;         // of each shared variable
    std::vector<const void*> argument_data_;
    std::vector<std::int64_t> symbols_;
    std::vector<std::size_t> output_buffers_;
    Block errors_;
    std::vector<Array> counters_;

    Arena arena_;
    std::shared_ptr<const Placement> placement_;
    // What `once` was last computed from, and where it left its values.
    std::vector<std::size_t> once_buffers_, once_shared_;
    std::vector<std::uint64_t> once_versions_;
    std::vector<std::int64_t> once_offsets_;
    bool once_done_ = false;
};

}  // namespace bitale
