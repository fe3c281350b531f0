// A call computes its batch at once; where that does not fit a limit, with values computed again or in parts.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/options.h"
#include "runtime/memory/limit.h"
#include "runtime/micro_batched.h"
#include "runtime/recomputed.h"
#include "runtime/state.h"

namespace bitale {

// What a call at once was refused for, in the words of a refusal; empty where no limit refused it, but the
// system had no memory.
inline std::string refusal_of(Function::State& runs, std::span<const Array> arguments, std::int64_t steps,
                              const OutOfMemory& error) {
    if (dynamic_cast<const MemoryRefusal*>(&error)) return error.what();
    if (options().memory_limit <= 0) return {};
    return explanation(runs, arguments, steps, error.what()).value_or(error.what());
}

// Ways that calls are computed by, other than at once, as far as there are any yet.
struct Made {
    MicroBatched* parts = nullptr;
    Recomputed* recomputed = nullptr;
};
inline Made made_for(Function::State& state) {
    const std::lock_guard lock(state.waiting);
    return {state.parts, state.recomputed.get()};
}

// What `f` does; where it is refused, the refusal says what `ways` need, too.
template <class F>
auto or_told(const Recomputed* ways, const CallSizes& sizes, F&& f) {
    try {
        return f();
    } catch (const MemoryRefusal& e) {
        if (!ways) throw;
        throw MemoryRefusal(e.what() + ways->refusal(sizes));
    }
}

// What keeps memory from earlier calls while another way computes this one: bits of a call do not depend on
// earlier ones, nor does the function's limit.
class Idle {
  public:
    Idle() = default;
    Idle(Executable& whole, const Made& made, const Executable& runs) {
        const auto add = [&](Executable* e) {
            if (e && e != &runs && count_ < all_.size()) all_[count_++] = e;
        };
        add(&whole);
        add(made.parts);
        if (made.recomputed) made.recomputed->for_each_executable(add);
    }
    // Within the lock of the call.
    void drop_arenas() const {
        for (std::size_t k = 0; k < count_; ++k) all_[k]->drop_arena();
    }

  private:
    std::array<Executable*, 2 * Recomputed::most_ways + 2> all_{};
    std::size_t count_ = 0;
};

// `call` gets what runs, the variables to lock, and what is idle meanwhile. `has_begun`: whether steps of a
// loop are done, which are not done again.
template <class F, class B>
Results whole_or_in_parts(Function::State& runs, std::span<const Array> arguments, std::int64_t steps,
                          F&& call, B&& has_begun) {
    const bool has_device_limit = options().memory_limit > 0;
    const auto of_parts = [&](MicroBatched& parts, const Idle& idle) {
        Results results = call(parts, parts.shared(), idle);
        if (has_device_limit) parts.drop_totals();
        return results;
    };
    if (runs.micro_batch > 0 && runs.parts) return of_parts(*runs.parts, Idle());
    Executable& whole = *runs.current.load(std::memory_order_acquire);
    if (runs.memory_limit == 0 && !has_device_limit) return call(whole, runs.shared, Idle());
    Made made = made_for(runs);
    const auto ended = [&](bool in_parts, Recomputed::Way way) {
        runs.last_in_parts.store(in_parts);
        if (made.recomputed) made.recomputed->set_last(way);
    };
    const auto in_parts = [&](MicroBatched& parts) {
        Results results = of_parts(parts, Idle(whole, made, parts));
        ended(true, {});
        return results;
    };
    const auto computed_again = [&](Recomputed::Way way) {
        Executable& executable = made.recomputed->executable(way);
        Results results = call(executable, made.recomputed->shared(way), Idle(whole, made, executable));
        ended(false, way);
        return results;
    };
    if (!has_device_limit) {
        if (made.recomputed && !made.recomputed->is_empty())
            if (const std::optional<Recomputed::Way> way = made.recomputed->known(
                    CallSizes::of(runs.signature, arguments, steps), runs.memory_limit))
                return computed_again(*way);
        if (made.parts && made.parts->has_computed(arguments, steps)) return in_parts(*made.parts);
    }
    std::string refusal;
    try {
        Results results = call(whole, runs.shared, Idle(whole, made, whole));
        ended(false, {});
        return results;
    } catch (const OutOfMemory& e) {
        refusal = refusal_of(runs, arguments, steps, e);
        if (refusal.empty() || has_begun()) throw;
    }
    Recomputed* const ways = ways_of(runs);
    const CallSizes sizes = CallSizes::of(runs.signature, arguments, steps);
    if (ways) {
        const std::int64_t limit = runs.memory_limit > 0 ? runs.memory_limit : INT64_MAX;
        std::optional<Recomputed::Way> before;
        // On a GPU, variables that had no place there yet take what seemed to be left: once more, then.
        for (int time = 0; time < 3; ++time) {
            const std::optional<Recomputed::Way> way =
                has_device_limit ? ways->way_on_device(sizes, limit) : ways->way_for(sizes, limit);
            made = made_for(runs);
            if (!way || way == before) break;
            ways->compile(*way);
            try {
                return computed_again(*way);
            } catch (const OutOfMemory& e) {  // by the device's limit
                if (!has_device_limit || has_begun()) throw;
                refusal = refusal_of(runs, arguments, steps, e);
            }
            before = way;
        }
    }
    // What even parts of a row do not keep is refused before anything is compiled, or takes memory.
    if (MicroBatched* const planned = planned_parts(runs); planned && !planned->is_prepared())
        or_told(ways, sizes, [&] {
            const CallLock lock(*runs.device, runs.shared);
            Idle(whole, made, *planned).drop_arenas();
            planned->require_room(sizes.symbols, steps);
        });
    if (ways && !planned_parts(runs)) refusal += ways->refusal(sizes);
    MicroBatched& parts = parts_for_limit(runs, refusal);
    made = made_for(runs);
    return or_told(ways, sizes, [&] { return in_parts(parts); });
}

}  // namespace bitale
