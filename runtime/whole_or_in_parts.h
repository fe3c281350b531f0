// A call computes its batch at once, or in parts where that does not fit a limit.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/options.h"
#include "runtime/memory/limit.h"
#include "runtime/micro_batched.h"
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

inline MicroBatched* parts_made(Function::State& state) {
    const std::lock_guard lock(state.waiting);
    return state.parts;
}

// `call` gets what runs, the variables to lock, and what keeps memory meanwhile without running, or null:
// bits of a call do not depend on earlier ones, nor does the function's limit. `has_begun`: whether steps of
// a loop are done, which are not done again.
template <class F, class B>
Results whole_or_in_parts(Function::State& runs, std::span<const Array> arguments, std::int64_t steps,
                          F&& call, B&& has_begun) {
    if (runs.micro_batch > 0 && runs.parts) return call(*runs.parts, runs.parts->shared(), nullptr);
    Executable& whole = *runs.current.load(std::memory_order_acquire);
    const bool has_device_limit = options().memory_limit > 0;
    if (runs.memory_limit == 0 && !has_device_limit) return call(whole, runs.shared, nullptr);
    MicroBatched* const made = parts_made(runs);
    const auto in_parts = [&](MicroBatched& parts) {
        Results results = call(parts, parts.shared(), &whole);
        runs.last_in_parts.store(true);
        return results;
    };
    if (made && !has_device_limit && made->has_computed(arguments, steps)) return in_parts(*made);
    std::string refusal;
    try {
        Results results = call(whole, runs.shared, made);
        runs.last_in_parts.store(false);
        return results;
    } catch (const OutOfMemory& e) {
        refusal = refusal_of(runs, arguments, steps, e);
        if (refusal.empty() || has_begun()) throw;
    }
    return in_parts(parts_for_limit(runs, refusal));
}

}  // namespace bitale
