// One call at a time of a Program: binds arguments, places buffers, walks the steps, reads the error word,
// commits.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "graph/base/turns.h"
#include "runtime/exec/call_states.h"
#include "runtime/exec/device.h"
#include "runtime/exec/frame.h"
#include "runtime/exec/launcher.h"
#include "runtime/exec/once.h"
#include "runtime/memory/limit.h"
#include "runtime/storage/arena.h"

namespace bitale {

// Calls and times of each step of `once`, then of the body, by all calls together.
class Meters {
  public:
    struct Meter {
        std::atomic<std::int64_t> calls{0};
        std::atomic<double> seconds{0}, first{0};
        // In its first call a library compiles its own code, which takes many times as long: that
        // call counts as much as the second one, as soon as there is one.
        void add(double more) {
            const std::int64_t before = calls.fetch_add(1, std::memory_order_relaxed);
            if (before == 0) first.store(more, std::memory_order_relaxed);
            const double instead = before == 1 ? more - first.load(std::memory_order_relaxed) : 0;
            seconds.fetch_add(more + instead, std::memory_order_relaxed);
        }
    };
    explicit Meters(const Program& program)
        : meters_(std::make_unique<Meter[]>(program.once.steps.size() + program.body.steps.size())) {}
    Meter& operator[](std::size_t i) { return meters_[i]; }
    const Meter& operator[](std::size_t i) const { return meters_[i]; }

  private:
    std::unique_ptr<Meter[]> meters_;
};

// What the arenas of calls that overlap hold together.
class ArenaBytes {
  public:
    void add(std::int64_t bytes) {
        const std::int64_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
        std::int64_t most = most_.load(std::memory_order_relaxed);
        while (most < now && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) continue;
    }
    std::int64_t most() const { return most_.load(std::memory_order_relaxed); }

  private:
    std::atomic<std::int64_t> now_{0}, most_{0};
};

// What a launcher takes beside the buffers of such a call.
OwnMemory own_memory_of(const Program& program, const Frame& frame, const Frame* before,
                        const Launcher& launcher);

// The symbols of the call whose sizes were new last, of all calls of a function.
class LastSymbols {
  public:
    void set(const std::vector<std::int64_t>& symbols) {
        const std::lock_guard lock(mutex_);
        symbols_ = symbols;
    }
    std::vector<std::int64_t> get() const {
        const std::lock_guard lock(mutex_);
        return symbols_;
    }

  private:
    mutable ForkMutex mutex_;
    std::vector<std::int64_t> symbols_;
};

class CallState {
  public:
    CallState(const Build& build, std::unique_ptr<Launcher> launcher, Meters& meters, ArenaBytes& arenas,
              LastSymbols& last_symbols);
    ~CallState();
    CallState(const CallState&) = delete;
    CallState& operator=(const CallState&) = delete;

    // As those of Executable. A run that throws OutOfMemory may be tried again; `all` has this state too.
    std::vector<Array> run(std::span<const Array> arguments);
    std::vector<Array> loop(const LoopCall& call, CallStates<CallState>& all);
    void drop_arena() {
        arena_.drop();
        launcher_->drop_reserved();
        placement_ = nullptr;
    }

  private:
    struct StepPlan {
        const Step* step = nullptr;
        std::size_t first_pointer = 0;  // into step_pointers_, which has room for all of its buffers
        std::vector<std::pair<std::size_t, std::int64_t>> short_floats;  // that begin here, and their bytes
        Meters::Meter* meter = nullptr;
    };
    struct Block {
        alignas(64) std::array<std::int64_t, 16> words{};  // the error word, and the tail that may be read
    };

    void plan(const Region& region, std::vector<StepPlan>& plans, Meters& meters, std::vector<bool>& begun);
    // Both throw OutOfMemory where a call, or a loop of `steps` if that is not 0, does not fit a limit: that
    // of the function, for which an arena may have to go that is larger than it needs to be, or any.
    void limit_arena(const Frame& frame, std::span<const Array> arguments, std::int64_t steps);
    void admit(const Frame& frame, std::span<const Array> arguments, std::int64_t steps);
    void begin();                   // pointers of shared variables and constants
    void use(const Frame& frame);   // pointers into the arena; runs `once` where it is out of date
    void step(const Frame& frame);  // one run of the body; throws IndexError before anything is committed
    bool run_steps(std::vector<StepPlan>& plans, const std::vector<StepSizes>& sizes);
    void launch(const StepPlan& plan, const StepSizes& sizes);
    void launch(const GemmStep& step, const StepSizes& sizes, void** pointers);
    void* pointer(int buffer) const { return pointers_[static_cast<std::size_t>(buffer)]; }
    // Behind those that are there.
    void gather(const std::vector<int>& buffers, void**& pointers) const {
        for (const int buffer : buffers) *pointers++ = pointer(buffer);
    }
    void count_versions();
    [[noreturn]] void fail() const;

    std::shared_ptr<const Program> program_;
    Arguments arguments_;
    std::unique_ptr<Launcher> launcher_;
    Frames frames_;
    const bool profile_;
    ArenaBytes& arenas_;
    LastSymbols& last_symbols_;
    std::uint64_t last_frame_ = 0;
    std::int64_t arena_bytes_ = 0;  // those of them that this has

    std::vector<StepPlan> once_, body_;
    std::vector<void*> pointers_;       // of each buffer
    std::vector<void*> step_pointers_;  // of each step's buffers, one after another
    std::vector<bool> updated_;         // of each shared variable
    std::vector<const void*> argument_data_;
    std::vector<std::int64_t> symbols_;
    std::vector<std::size_t> output_buffers_;
    Block errors_;
    std::vector<Array> counters_;

    FunctionLimit limit_;
    Arena arena_;
    std::shared_ptr<const Placement> placement_;
    OnceValues once_values_;
};

}  // namespace bitale
