// Plans of functions, before and between their calls.
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <optional>

#include "graph/base/border.h"
#include "graph/base/options.h"
#include "runtime/memory/limit.h"
#include "runtime/micro_batched.h"
#include "runtime/recomputed.h"
#include "runtime/state.h"

namespace bitale {

namespace {

const ApiBorder planning("for a memory plan");

MemoryPlan plan_of(const Build& build, const Executable& executable, std::vector<std::int64_t> symbols) {
    if (!build.program) return make_memory_plan(build, symbols);
    Frames frames(build.program, build.signature);
    symbols.reserve(1);  // of no symbol there is a pointer too
    const Frame& frame = frames.find(symbols.data());
    return make_memory_plan(build, frame, symbols, executable.own_memory(*build.program, frame));
}

std::vector<std::int64_t> with_zeros(const Signature& signature, std::vector<std::int64_t> symbols) {
    for (std::size_t s = 0; s < symbols.size(); ++s)
        if (signature.sources[s].axis < 0) symbols[s] = 0;
    return symbols;
}

// Of integer scalars, such as the number of a minibatch, what takes more: their values, or 0. The last
// minibatch of a data set is often a small one.
template <class PlanOf>
MemoryPlan larger_plan(const Signature& signature, const std::vector<std::int64_t>& symbols,
                       PlanOf&& plan_of) {
    const std::vector<std::int64_t> zeros = with_zeros(signature, symbols);
    MemoryPlan plan = plan_of(symbols);
    if (zeros == symbols) return plan;
    try {
        MemoryPlan of_zeros = plan_of(zeros);
        if (of_zeros.peak_bytes >= plan.peak_bytes) return of_zeros;
    } catch (const ShapeError&) {  // there is no such call
    } catch (const IndexError&) {
    }
    return plan;
}

}  // namespace

MemoryPlan memory_plan_of(const Function::State& state, const ExampleShapes& lengths) {
    const Build build = build_of(state);
    const std::vector<std::int64_t> symbols = symbols_of(build, lengths, state.executable->last_symbols());
    if (state.micro_batch > 0 && state.parts) return state.parts->memory_plan(symbols);
    return larger_plan(build.signature, symbols, [&](const std::vector<std::int64_t>& of) {
        return plan_of(build, *state.executable, of);
    });
}

namespace {

// Of a call that keeps the limit as gradients compute values again; nothing where none does so.
std::optional<MemoryPlan> plan_computed_again(Function::State& state,
                                              const std::vector<std::int64_t>& symbols, std::int64_t limit) {
    Recomputed* const ways = ways_of(state);
    if (!ways) return std::nullopt;
    CallSizes sizes{with_zeros(state.signature, symbols)};
    for (const bool of_last_call : {false, true}) {
        if (of_last_call && sizes.symbols == symbols) break;
        if (of_last_call) sizes.symbols = symbols;
        try {
            const std::optional<Recomputed::Way> way = ways->way_for(sizes, limit);
            if (!way) continue;
            const std::lock_guard turn(state.device->turns());
            return ways->memory_plan(*way, sizes);
        } catch (const ShapeError&) {  // there is no such call
        } catch (const IndexError&) {
        }
    }
    return std::nullopt;
}

// Of a call at once, with values computed again or in parts where it does not fit the function's limit so, or
// has not fitted the device's.
MemoryPlan plan_of(Function::State& state, const ExampleShapes& lengths) {
    std::vector<std::int64_t> symbols;
    MemoryPlan plan;
    std::int64_t limit = INT64_MAX;
    bool was_in_parts = false;
    {
        const std::lock_guard lock(state.waiting);
        const std::lock_guard turn(state.device->turns());
        plan = memory_plan_of(state, lengths);
        // What other functions leave of the device's limit only a call tells.
        for (const std::int64_t given : {plan.limit, options().memory_limit})
            if (given > 0) limit = std::min(limit, given);
        if (state.micro_batch > 0 || !state.program || limit == INT64_MAX) return plan;
        symbols = symbols_of(build_of(state), lengths, state.executable->last_symbols());
        if (lengths.empty() && state.recomputed)
            if (const Recomputed::Way last = state.recomputed->last(); last.number >= 0)
                return state.recomputed->memory_plan(last, {symbols});
        was_in_parts = state.parts && lengths.empty() && state.last_in_parts.load();
        if (plan.peak_bytes <= limit && !was_in_parts) return plan;
    }
    if (!was_in_parts)
        if (std::optional<MemoryPlan> again = plan_computed_again(state, symbols, limit))
            return *std::move(again);
    try {
        MicroBatched* const parts = planned_parts(state);
        if (!parts) return plan;
        const std::lock_guard turn(state.device->turns());
        return larger_plan(state.signature, symbols,
                           [&](const std::vector<std::int64_t>& of) { return parts->memory_plan(of); });
    } catch (const MemoryRefusal&) {
        return plan;  // that is what would be needed
    }
}

// Beside examples an argument that has a default has its shape, unless they say otherwise.
ExampleShapes with_defaults(const Function::State& state, ExampleShapes lengths) {
    if (lengths.empty()) return lengths;
    for (std::size_t i = 0; i < state.plain->inputs.size(); ++i) {
        const NodePtr& input = state.plain->inputs[i];
        const bool is_given = std::any_of(lengths.begin(), lengths.end(),
                                          [&](const auto& example) { return example.first.node() == input; });
        if (state.defaults[i] && !is_given) lengths.emplace_back(Expr(input), state.defaults[i]->shape());
    }
    return lengths;
}

}  // namespace

MemoryPlan Function::memory_plan(const ExampleShapes& examples) const {
    (void)state();  // throws where there is none
    State& of = *state_;
    return planning([&] {
        const ExampleShapes lengths = with_defaults(of, examples);
        if (of.specialised && !of.is_compiled()) {
            const Specialised::Version version = lengths.empty() && of.specialised->latest()
                                                     ? of.specialised->latest()
                                                     : of.specialised->of_shapes(lengths);
            ExampleShapes own;
            for (const auto& [input, shape] : lengths) {
                const Nodes& inputs = of.plain->inputs;
                const auto at = std::find(inputs.begin(), inputs.end(), input.node()) - inputs.begin();
                own.emplace_back(Expr(version->plain->inputs.at(static_cast<std::size_t>(at))), shape);
            }
            return plan_of(*version, own);
        }
        return plan_of(of, lengths);
    });
}

void refuse_over_limit(const Function::State& state) {
    if (state.memory_limit < 0)
        throw GraphError(state.where, fmt::format("function \"{}\": its memory_limit is negative, {} bytes",
                                                  state.name, state.memory_limit));
    const bool in_parts = state.micro_batch > 0 && state.parts;  // as the user asked for
    if (state.memory_limit == 0 || (state.parts && !in_parts) || (state.specialised && !state.is_compiled()))
        return;
    if (!state.program && !in_parts)
        throw DeviceError(state.where,
                          fmt::format("function \"{}\": a memory_limit cannot be kept on device {}, "
                                      "which evaluates the graph node by node without a plan",
                                      state.name, state.device->name()));
    for (const SizeSource& source : state.signature.sources)
        if (source.axis >= 0) return;
    const std::vector<std::int64_t> zeros(state.signature.sources.size(), 0);
    const Build build = build_of(state);
    std::optional<MemoryPlan> plan;
    try {
        plan = in_parts ? state.parts->memory_plan(zeros) : plan_of(build, *state.executable, zeros);
    } catch (const ShapeError&) {
        return;  // as a call with 0 would say
    } catch (const IndexError&) {
        return;
    }
    refuse_over_limit(*plan, state.where);
}

}  // namespace bitale
