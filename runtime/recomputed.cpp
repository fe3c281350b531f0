#include "runtime/recomputed.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "runtime/figures.h"
#include "runtime/memory/limit.h"
#include "runtime/micro_batched.h"
#include "runtime/report.h"

namespace bitale {

CallSizes CallSizes::of(const Signature& signature, std::span<const Array> arguments, std::int64_t steps) {
    Arguments binder(signature);
    CallSizes sizes;
    sizes.symbols.resize(binder.symbols());
    std::vector<const void*> data(arguments.size());
    binder.bind(arguments, sizes.symbols.data(), data.data());
    for (const Array& a : arguments) sizes.argument_bytes += a.bytes();
    sizes.steps = steps;
    return sizes;
}

Recomputed::Recomputed(Function::State& function)
    : function_(function),
      frames_(function.program, Arguments(function.signature).symbol_ids(), function.signature.checks) {
    for (const Recomputation& how : recomputations(*function.optimised)) {
        Graph graph = *function.optimised;
        const std::size_t values = recompute(graph, how);
        auto way = std::make_shared<Function::State>();
        way->name = function.name;
        way->where = function.where;
        way->device = function.device;
        way->plain = function.plain;
        way->optimised = std::make_shared<const Graph>(std::move(graph));
        way->signature = function.signature;
        way->inputs = function.inputs;
        way->defaults = function.defaults;
        way->shared = function.shared;
        way->precision = function.precision;
        way->profile = function.profile;
        way->memory_limit = function.memory_limit;
        way->activations = function.activations;
        way->strict_math = function.strict_math;
        way->lengths = function.lengths;
        generate_program(*way, {});
        all_.push_back(way);
        ways_.push_back({std::move(way), how, values});
    }
}

MemoryPlan Recomputed::plan_of(const Function::State& way, const CallSizes& sizes) const {
    const Build build = build_of(way);
    Frames frames(way.program, Arguments(way.signature).symbol_ids(), way.signature.checks);
    std::vector<std::int64_t> symbols = sizes.symbols;
    symbols.reserve(1);  // of no symbol there is a pointer too
    const Frame& frame = frames.find(symbols.data());
    const Executable& whole = *function_.current.load(std::memory_order_acquire);
    return make_memory_plan(build, frame, symbols, whole.own_memory(*way.program, frame), sizes.steps);
}

double Recomputed::seconds_of(const Function::State& way, const CallSizes& sizes) const {
    return figures_of(*way.program, sizes.symbols, {}).seconds;
}

std::string Recomputed::words_for(const Planned& planned, const CallSizes& sizes) const {
    const double whole = seconds_of(function_, sizes), now = seconds_of(*planned.way, sizes);
    const std::string what = planned.how.segments == 0
                                 ? std::string("between products, which are kept")
                                 : fmt::format("in all but the last of {} segments", planned.how.segments);
    return fmt::format("gradients compute {} value{} again, {}; predicted are {} instead of {}, {:+.0f} %",
                       planned.values, planned.values == 1 ? "" : "s", what, time_in_words(now),
                       time_in_words(whole), whole > 0 ? 100 * (now / whole - 1) : 0);
}

MemoryPlan Recomputed::memory_plan(const Function::State& way, const CallSizes& sizes) const {
    MemoryPlan plan = plan_of(way, sizes);
    for (const Planned& planned : ways_)
        if (planned.way.get() == &way) plan.recomputed = words_for(planned, sizes);
    return plan;
}

std::string Recomputed::refusal(const CallSizes& sizes) const {
    if (ways_.empty()) return "";
    std::int64_t least = INT64_MAX;
    for (const Planned& planned : ways_) least = std::min(least, plan_of(*planned.way, sizes).peak_bytes);
    return fmt::format("\nWhere gradients compute values again, it needs {} ({} bytes).", bytes_text(least),
                       least);
}

int Recomputed::fastest_that_fits(const CallSizes& sizes) const {
    std::vector<std::pair<double, int>> order;
    for (std::size_t k = 0; k < ways_.size(); ++k)
        order.emplace_back(seconds_of(*ways_[k].way, sizes), static_cast<int>(k));
    std::sort(order.begin(), order.end());
    for (const auto& [seconds, k] : order)
        if (plan_of(*ways_[static_cast<std::size_t>(k)].way, sizes).peak_bytes <= function_.memory_limit)
            return k;
    return -1;
}

bool Recomputed::parts_are_faster(const CallSizes& sizes, double seconds) const {
    // Each pass but the last computes the forward pass up to where it ends: more than one of all of it
    // together, which is the most that gradients compute again. There may be a hundred, which take long to
    // plan.
    constexpr std::size_t most_passes = 3;
    if (passes_over_parts(function_) > most_passes) return false;
    const MicroBatched* const parts = planned_parts(function_);
    const std::optional<double> needed =
        parts ? parts->predicted_seconds(sizes.symbols, sizes.steps) : std::nullopt;
    return needed && *needed <= seconds;
}

std::optional<Recomputed::Known> Recomputed::found(const CallSizes& sizes) const {
    std::vector<std::int64_t> symbols = sizes.symbols;
    symbols.reserve(1);
    const std::lock_guard lock(planning_);
    Known own{frames_.find(symbols.data()).number, sizes.argument_bytes, sizes.steps, -2};
    for (const Known& k : known_)
        if (k.frame == own.frame && k.argument_bytes == own.argument_bytes && k.steps == own.steps) return k;
    return own;
}

void Recomputed::remember(const Known& known) {
    constexpr std::size_t most_known = 16;
    const std::lock_guard lock(planning_);
    if (known_.size() < most_known)
        known_.push_back(known);
    else
        known_[next_known_++ % most_known] = known;
}

Recomputed::Way Recomputed::known(const CallSizes& sizes) const {
    const int way = found(sizes)->way;
    return way < 0 ? nullptr : ways_[static_cast<std::size_t>(way)].way;
}

Recomputed::Way Recomputed::for_calls(const CallSizes& sizes) {
    if (ways_.empty()) return nullptr;
    Known own = *found(sizes);
    if (own.way == -2) {
        own.way = -1;
        // Where it is the device's limit that is too low, or one of a call beside others, parts help.
        if (plan_of(function_, sizes).peak_bytes > function_.memory_limit) {
            const int fastest = fastest_that_fits(sizes);
            if (fastest >= 0 &&
                !parts_are_faster(sizes, seconds_of(*ways_[static_cast<std::size_t>(fastest)].way, sizes)))
                own.way = fastest;
        }
        if (own.way >= 0) {
            Function::State& way = *ways_[static_cast<std::size_t>(own.way)].way;
            const std::lock_guard lock(function_.waiting);
            if (!way.executable) prepare_program(way);
        }
        remember(own);
    }
    return own.way < 0 ? nullptr : ways_[static_cast<std::size_t>(own.way)].way;
}

std::string Recomputed::report(Detail detail) const {
    std::string s;
    for (const Planned& planned : ways_) {
        if (!planned.way->executable) continue;
        CallSizes sizes;
        sizes.symbols = planned.way->executable->last_symbols();
        s += fmt::format("\nFor calls that do not fit {} at once, {}:\n", bytes_text(function_.memory_limit),
                         words_for(planned, sizes));
        s += report_of(*planned.way, detail);
    }
    return s;
}

Recomputed::Way recomputed_for_limit(Function::State& function, const CallSizes& sizes) {
    if (function.memory_limit <= 0 || !function.program || function.micro_batch > 0) return nullptr;
    Recomputed* recomputed = nullptr;
    {
        const std::lock_guard lock(function.waiting);
        if (!function.recomputed) function.recomputed = std::make_shared<Recomputed>(function);
        recomputed = function.recomputed.get();
    }
    return recomputed->for_calls(sizes);
}

std::int64_t largest_arena_of(Function::State& function) {
    const std::lock_guard lock(function.waiting);
    const std::lock_guard turn(function.device->turns());
    std::int64_t bytes = function.current.load(std::memory_order_acquire)->arena_bytes();
    if (function.made_for_limit) bytes = std::max(bytes, function.made_for_limit->arena_bytes());
    if (function.recomputed)
        for (const Recomputed::Way& way : function.recomputed->ways())
            if (const Executable* executable = way->current.load())
                bytes = std::max(bytes, executable->arena_bytes());
    return bytes;
}

}  // namespace bitale
