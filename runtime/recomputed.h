// A function with a memory_limit whose gradients compute values of the forward pass again.
#pragma once

#include <cstdint>
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
    bool is_empty() const { return ways_.empty(); }

    using Way = std::shared_ptr<Function::State>;
    static constexpr std::size_t most_ways = 5;
    // The fastest by prediction of those that keep the function's limit, parts of the batch included: how to
    // compute such calls with values computed again, compiled; null where parts are faster, or nothing fits.
    Way for_calls(const CallSizes& sizes);
    // What for_calls() has found for calls of these sizes; null where it has found nothing, or not been
    // asked.
    Way known(const CallSizes& sizes) const;
    // Of calls that are computed so.
    MemoryPlan memory_plan(const Function::State& way, const CallSizes& sizes) const;
    // What calls need by the way that takes least, as a further line of a refusal; empty where there is none.
    std::string refusal(const CallSizes& sizes) const;
    std::string report(Detail detail) const;               // of the ways that are in use
    const std::vector<Way>& ways() const { return all_; }  // those that have no executable yet, too

  private:
    struct Planned {
        Way way;
        Recomputation how;
        std::size_t values = 0;  // computed again
    };
    struct Known {
        std::uint64_t frame = 0;
        std::int64_t argument_bytes = 0, steps = 0;
        int way = -1;  // of ways_
    };

    MemoryPlan plan_of(const Function::State& way, const CallSizes& sizes) const;
    double seconds_of(const Function::State& way, const CallSizes& sizes) const;
    std::string words_for(const Planned& planned, const CallSizes& sizes) const;
    int fastest_that_fits(const CallSizes& sizes) const;
    bool parts_are_faster(const CallSizes& sizes, double seconds) const;
    std::optional<Known> found(const CallSizes& sizes) const;  // its frame at least
    void remember(const Known& known);

    Function::State& function_;
    std::vector<Planned> ways_;
    std::vector<Way> all_;
    mutable ForkMutex planning_;  // guards what follows
    mutable Frames frames_;       // of the function, to tell calls of equal sizes
    std::vector<Known> known_;
    std::size_t next_known_ = 0;
};

// Made by the first who needs it: what computes calls of a function that does not fit its own limit as it is,
// with values computed again. Null where it fits, where parts of the batch are faster, and where nothing
// fits.
Recomputed::Way recomputed_for_limit(Function::State& function, const CallSizes& sizes);

// Of all ways by which calls of a compiled function have been computed: a call has the arena of one.
std::int64_t largest_arena_of(Function::State& function);

}  // namespace bitale
