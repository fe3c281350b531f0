// Words for what does not fit.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "bitale/memory_plan.h"
#include "runtime/exec/device.h"
#include "runtime/exec/frame.h"
#include "runtime/memory/plan.h"

namespace bitale {

void require_present(const MemoryPlan& plan);  // not empty, nor moved from
std::string bytes_text(std::int64_t bytes);    // "737.3 MB"
// "conv2d at net.cpp:12: float32 [10000, 32, 24, 24] = 737.3 MB, of [n, 32, 24, 24]".
std::string description_of(const MemoryPlan::Buffer& buffer);

// A table of the largest blocks, whose rows add up to the plan's peak, and what helps. `cause`: what was
// refused, in a sentence of its own.
std::string refusal_text(const std::string& cause, const MemoryPlan& plan);

// As Function::memory_plan, for who holds the function's lock and its device's turn, or has it alone.
MemoryPlan memory_plan_of(const Function::State& state, const ExampleShapes& lengths);

// Throws MemoryRefusal where the plan of a function needs more than its limit.
void refuse_over_limit(const MemoryPlan& plan, Where function);

// Sizes of calls that fit a limit, what their arena and workspace are, and the most that both may have then.
struct FittingCall {
    std::uint64_t frame = 0;  // 0: none
    std::int64_t argument_bytes = 0, steps = 0, arena = 0, workspace = 0, most = INT64_MAX;
    bool is_like(const FittingCall& other) const {
        return frame == other.frame && argument_bytes == other.argument_bytes && steps == other.steps;
    }
};

// Throws MemoryRefusal where a call does not fit the function's limit, before anything of it is done. Of
// calls one after another; a plan is made once for those of the same sizes.
class FunctionLimit {
  public:
    explicit FunctionLimit(const Build& build) : build_(build) {}
    bool is_set() const { return build_.memory_limit > 0; }
    template <class Own>
    FittingCall check(const Frame& frame, std::span<const std::int64_t> symbols,
                      std::span<const Array> arguments, std::int64_t steps, Own&& own) {
        FittingCall call{.frame = frame.number, .steps = steps};
        if (!is_set()) return call;
        for (const Array& a : arguments) call.argument_bytes += a.bytes();
        for (const FittingCall& known : fitting_)
            if (known.is_like(call)) return known;
        const MemoryPlan plan = make_memory_plan(build_, frame, symbols, own(), steps);
        refuse_over_limit(plan, build_.where);
        call.arena = plan.arena_bytes;
        for (const MemoryPlan::Buffer& b : plan.buffers)
            if (b.kind == MemoryPlan::Kind::workspace) call.workspace += b.reserved;
        call.most = plan.limit - (plan.peak_bytes - call.arena - call.workspace);
        fitting_[next_++ % fitting_.size()] = call;
        return call;
    }

  private:
    const Build& build_;
    std::array<FittingCall, 16> fitting_{};
    std::size_t next_ = 0;
};

// Of an OutOfMemory of a call, or of a loop of `steps` if that is not 0; nothing where there is no memory for
// it either.
std::optional<std::string> explanation(Function::State& state, std::span<const Array> arguments,
                                       std::int64_t steps, const char* cause) noexcept;
// What a call does; its OutOfMemory says where the memory goes.
template <class F>
auto explaining(Function::State& state, std::span<const Array> arguments, std::int64_t steps, F&& f) {
    try {
        return f();
    } catch (const MemoryRefusal&) {
        throw;
    } catch (const OutOfMemory& e) {
        if (const auto text = explanation(state, arguments, steps, e.what())) throw MemoryRefusal(*text);
        throw;
    } catch (const std::bad_alloc&) {
        if (const auto text = explanation(state, arguments, steps, "no memory is left"))
            throw MemoryRefusal(*text);
        throw;
    }
}

// Of a function that was built, where its lengths are known; and where no plan can be made at all, for then
// no limit can be kept: DeviceError.
void refuse_over_limit(const Function::State& state);

// What a function is prepared from.
Build build_of(const Function::State& state);

}  // namespace bitale
