// A function with a limit of memory whose gradients compute values of the forward pass again, of all rows of
// the batch at once or of some at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bitale/memory_plan.h"
#include "graph/base/turns.h"
#include "ops/autodiff/recompute.h"
#include "runtime/exec/frame.h"
#include "runtime/state.h"

namespace bitale {

class MicroBatched;

// What decides whether a call fits.
struct CallSizes {
    std::vector<std::int64_t> symbols;  // values of those of the signature
    std::int64_t argument_bytes = 0, steps = 0;
    static CallSizes of(const Signature& signature, std::span<const Array> arguments, std::int64_t steps);
};

class Recomputed {
  public:
    // Plans ways to compute the function, which has a program and outlives this; compiles none of them.
    explicit Recomputed(Function::State& function);
    ~Recomputed();
    Recomputed(const Recomputed&) = delete;
    Recomputed& operator=(const Recomputed&) = delete;
    bool is_empty() const { return ways_.empty(); }

    // With which values computed again, and whether in parts of the batch.
    struct alignas(8) Way {  // an atomic of 8 bytes: with less, clang calls libatomic
        int number = -1;
        bool in_parts = false;
        bool operator==(const Way&) const = default;
    };
    static constexpr std::size_t most_ways = 5;
    // The fastest by prediction of those whose calls of these sizes take at most so many bytes; nothing where
    // parts with nothing computed again are faster, or nothing fits. Compiles nothing.
    std::optional<Way> way_for(const CallSizes& sizes, std::int64_t limit) {
        return way_for(sizes, limit, INT64_MAX);
    }
    // The same for a call that does not fit the device's limit at once beside what is alive at this moment.
    std::optional<Way> way_on_device(const CallSizes& sizes, std::int64_t limit);
    void compile(Way way);  // where it is not yet
    // What way_for() has found last for calls of these sizes, where that was with this limit and is compiled.
    std::optional<Way> known(const CallSizes& sizes, std::int64_t limit) const;

    Executable& executable(Way way) const;  // compiled
    const std::vector<SharedUse>& shared(Way way) const;
    // How the call that ended last was computed; no number: otherwise.
    Way last() const { return last_.load(); }
    void set_last(Way way) { last_.store(way); }
    // Of calls that are computed so.
    MemoryPlan memory_plan(Way way, const CallSizes& sizes) const;
    // What calls need by the way that takes least, as a further line of a refusal; empty where there is none.
    std::string refusal(const CallSizes& sizes) const;
    std::string report(Detail detail) const;  // of the ways that are in use
    template <class F>
    void for_each_executable(F&& f) const {  // likewise
        for (int k = 0; k < static_cast<int>(ways_.size()); ++k)
            for (const bool in_parts : {false, true})
                if (const Way way{k, in_parts}; is_compiled(way)) f(&executable(way));
    }

  private:
    struct Planned {
        std::shared_ptr<Function::State> whole;
        Recomputation how;
        std::size_t values = 0;  // computed again
        // In parts of the batch; null where nobody has wanted them yet, or there can be none.
        std::atomic<MicroBatched*> parts{nullptr};
        std::unique_ptr<MicroBatched> owned;
        bool has_no_parts = false;
    };
    // What a call of all rows at once takes.
    struct Need {
        std::int64_t peak = 0;           // 0: not known yet
        std::int64_t alive = 0;          // of it before the call
        std::int64_t once_compiled = 0;  // likewise, more
        double seconds = -1;             // negative: not known yet
    };
    // What calls of equal sizes take.
    struct Known {
        std::uint64_t frame = 0;
        std::int64_t argument_bytes = 0, steps = 0;
        std::vector<Need> needs;             // of ways_
        std::int64_t limit = -1, room = -1;  // for which `way` was found
        std::optional<Way> way;
    };

    const Planned& planned(Way way) const { return ways_[static_cast<std::size_t>(way.number)]; }
    MemoryPlan plan_of(const Function::State& way, const CallSizes& sizes) const;
    double seconds_of(const Function::State& way, const CallSizes& sizes) const;
    std::string words_for(Way way, const CallSizes& sizes, double seconds) const;
    // `room`: that the device's limit leaves at this moment for what is not alive; INT64_MAX: it has none.
    std::optional<Way> way_for(const CallSizes& sizes, std::int64_t limit, std::int64_t room);
    std::int64_t room_on_device();
    std::optional<Way> fastest_that_fits(Known& known, const CallSizes& sizes);
    bool fits(Known& known, int way, const CallSizes& sizes) const;
    std::size_t passes();
    MicroBatched* parts_of(Planned& planned);
    double seconds_in_parts(MicroBatched* parts, const CallSizes& sizes, const Known& known) const;
    bool is_compiled(Way way) const;
    Known found(const CallSizes& sizes) const;
    void remember(const Known& known);

    Function::State& function_;
    std::deque<Planned> ways_;  // parts are made, and all is compiled, under the function's `waiting`
    std::optional<std::size_t> passes_;  // over parts of the batch; likewise
    std::atomic<Way> last_{Way{}};
    mutable ForkMutex planning_;  // guards what follows
    mutable Frames frames_;       // of the function, to tell calls of equal sizes
    std::vector<Known> known_;
    std::size_t next_known_ = 0;
};

// Those of a function; made by the first who needs them. Null where there can be none.
Recomputed* ways_of(Function::State& function);

// Of all ways by which calls of a compiled function have been computed: a call has the arena of one.
std::int64_t largest_arena_of(Function::State& function);

}  // namespace bitale
