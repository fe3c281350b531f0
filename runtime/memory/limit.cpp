#include "runtime/memory/limit.h"

#include <fmt/format.h>

#include <mutex>

#include "graph/base/text.h"
#include "runtime/state.h"

namespace bitale {

namespace {

std::string subject(const MemoryPlan& plan, Where where) {
    return fmt::format("{}function {} on {}", where.line ? where.text() + ": " : "", in_quotes(plan.function),
                       printable(plan.device));
}

bool is_float_argument(const MemoryPlan::Buffer& b) {
    return (b.kind == MemoryPlan::Kind::argument || b.kind == MemoryPlan::Kind::shared) &&
           is_float(b.dtype) && !b.shape.empty();
}

}  // namespace

std::string refusal_text(const std::string& cause, const MemoryPlan& plan) {
    constexpr std::size_t most_named = 5;
    std::string text = cause + "\nThe largest buffers:";
    std::size_t named = 0;
    std::int64_t rest = 0;
    for (const MemoryPlan::Buffer& b : plan.buffers) {
        if (b.on_host) continue;
        if (named == most_named)
            rest += b.reserved;
        else
            ++named, text += "\n  " + description_of(b);
    }
    if (rest > 0) text += fmt::format("\n  and {} in smaller ones", bytes_text(rest));
    if (plan.arena_bytes > 0)
        text += fmt::format("\nWhat lives between steps shares {}.", bytes_text(plan.arena_bytes));
    const bool open = !plan.lengths.empty();
    const bool floats =
        !plan.buffers.empty() && std::any_of(plan.buffers.begin(), plan.buffers.end(), is_float_argument);
    text +=
        fmt::format("\nCure: {}{}a higher limit or more memory; memory_plan() shows it all.",
                    open ? "a smaller batch, " : "", floats ? "data kept as bytes and not as floats, " : "");
    return text;
}

void refuse_over_limit(const MemoryPlan& plan, Where function) {
    if (plan.limit <= 0 || plan.peak_bytes <= plan.limit) return;
    // So few bytes are hardly meant as bytes.
    constexpr std::int64_t few = 64 << 10;
    throw MemoryRefusal(refusal_text(
        fmt::format("{} needs {} ({} bytes), and its memory_limit is {} ({} bytes): {} too little{}",
                    subject(plan, function), bytes_text(plan.peak_bytes), plan.peak_bytes,
                    bytes_text(plan.limit), plan.limit, bytes_text(plan.peak_bytes - plan.limit),
                    plan.limit < few
                        ? fmt::format("; the limit counts bytes, write {}_MiB if you mean MiB", plan.limit)
                        : ""),
        plan));
}

Build build_of(const Function::State& state) {
    Build build;
    build.plain = state.plain;
    build.signature = state.signature;
    build.program = state.program;
    build.profile = state.profile;
    build.device = state.device->name();
    build.where = state.where;
    build.memory_limit = state.memory_limit;
    return build;
}

std::optional<std::string> explanation(Function::State& state, std::span<const Array> arguments,
                                       std::int64_t steps, const char* cause) noexcept try {
    Build build;
    Executable* executable = nullptr;
    {
        const std::lock_guard lock(state.waiting);
        build = build_of(state);
        executable = state.executable.get();
    }
    if (!build.program) return std::nullopt;
    Arguments binder(build.signature);
    std::vector<std::int64_t> symbols(binder.symbols());
    std::vector<const void*> data(arguments.size());
    binder.bind(arguments, symbols.data(), data.data());
    Frames frames(build.program, binder.symbol_ids(), build.signature.checks);
    const Frame& frame = frames.find(symbols.data());
    const OwnMemory own = executable->own_memory(*build.program, frame);
    const MemoryPlan plan = make_memory_plan(build, frame, symbols, own, steps);
    const std::string text = fmt::format("{}: {}; the call needs {}", subject(plan, state.where), cause,
                                         bytes_text(plan.peak_bytes));
    return refusal_text(text, plan);
} catch (...) {
    return std::nullopt;
}

}  // namespace bitale
