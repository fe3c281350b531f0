#include "runtime/memory/limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "graph/base/options.h"
#include "graph/base/text.h"
#include "runtime/state.h"

namespace bitale {

namespace {

std::string subject(const MemoryPlan& plan, Where where) {
    return fmt::format("{}function {} on {}", where.line ? where.text() + ": " : "", in_quotes(plan.function),
                       printable(plan.device));
}

// Whether most of what a call is given are floats.
bool is_given_floats(const MemoryPlan& plan) {
    const MemoryPlan::Buffer* largest = nullptr;
    for (const MemoryPlan::Buffer& b : plan.buffers)
        if ((b.kind == MemoryPlan::Kind::argument || b.kind == MemoryPlan::Kind::shared) &&
            (!largest || b.bytes > largest->bytes))
            largest = &b;
    return largest && is_float(largest->dtype) && !largest->shape.empty();
}

// Of an argument that parts of a batch add: which rows they compute.
bool is_of_parts(const MemoryPlan& plan, const MemoryPlan::Buffer& b) {
    return plan.micro_batch > 0 && b.kind == MemoryPlan::Kind::argument && b.shape.empty();
}

// A row for each of the largest blocks and one for the rest, in bytes, so that they add up to the peak.
std::string table_of_blocks(const MemoryPlan& plan) {
    constexpr std::size_t most_blocks = 5, most_in_turns = 3;
    struct Row {
        std::int64_t bytes;
        std::string text;
    };
    std::vector<Row> rows;
    std::string in_turns;  // in the arena
    std::size_t values = 0;
    for (const MemoryPlan::Buffer& b : plan.buffers) {
        if (b.on_host || b.reserved == 0 || is_of_parts(plan, b)) continue;
        if (b.offset < 0)
            rows.push_back({b.reserved, description_of(b)});
        else if (++values <= most_in_turns)
            in_turns +=
                "\n" + std::string(std::to_string(plan.peak_bytes).size() + 6, ' ') + description_of(b);
    }
    if (rows.size() > most_blocks) rows.resize(most_blocks);  // the largest come first
    if (plan.arena_bytes > 0)
        rows.push_back(
            {plan.arena_bytes,
             fmt::format("one block where values between steps take turns, at most {} at a time{}{}",
                         bytes_text(plan.least_arena_bytes), values > most_in_turns ? "; the largest:" : ":",
                         in_turns)});
    std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.bytes > b.bytes; });
    std::int64_t rest = plan.peak_bytes;
    for (const Row& row : rows) rest -= row.bytes;
    if (rest > 0)
        rows.push_back({rest, plan.micro_batch > 0 ? "totals and blocks of other parts, smaller ones, padding"
                                                   : "smaller blocks and padding"});
    std::string text = fmt::format("\nWhere the {} bytes go:", plan.peak_bytes);
    for (const Row& row : rows)
        text += fmt::format("\n  {:>{}}  {}", row.bytes, std::to_string(plan.peak_bytes).size(), row.text);
    return text;
}

std::string cure_of(const MemoryPlan& plan) {
    const bool open = !plan.lengths.empty();
    // So few bytes are hardly meant as bytes.
    const std::int64_t flag = options().memory_limit;
    return fmt::format("\nCure: {}{}a higher limit or more memory; memory_plan() shows it all.{}",
                       open ? "a smaller batch, " : "",
                       is_given_floats(plan) ? "data kept as bytes and not as floats, " : "",
                       flag > 0 && flag < 1 << 20
                           ? fmt::format("\nmemory_limit in BITALE_FLAGS is {0} bytes; write "
                                         "memory_limit={0}MiB if you mean MiB.",
                                         flag)
                           : "");
}

}  // namespace

std::string refusal_text(const std::string& cause, const MemoryPlan& plan) {
    return cause + table_of_blocks(plan) + cure_of(plan);
}

void refuse_over_limit(const MemoryPlan& plan, Where function) {
    if (plan.limit <= 0 || plan.peak_bytes <= plan.limit) return;
    // So few bytes are hardly meant as bytes.
    constexpr std::int64_t few = 64 << 10;
    throw MemoryRefusal(refusal_text(
        fmt::format("{} needs {} ({} bytes), and its memory_limit is {} ({} bytes): {} too little{}{}",
                    subject(plan, function), bytes_text(plan.peak_bytes), plan.peak_bytes,
                    bytes_text(plan.limit), plan.limit, bytes_text(plan.peak_bytes - plan.limit),
                    plan.micro_batch == 1 ? ", even for one row of its batch at a time" : "",
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
    Frames frames(build.program, build.signature);
    const Frame& frame = frames.find(symbols.data());
    const OwnMemory own = executable->own_memory(*build.program, frame);
    const MemoryPlan plan = make_memory_plan(build, frame, symbols, own, steps);
    const std::string text = fmt::format("{}: {}; the call needs {} ({} bytes)", subject(plan, state.where),
                                         cause, bytes_text(plan.peak_bytes), plan.peak_bytes);
    return refusal_text(text, plan);
} catch (...) {
    return std::nullopt;
}

}  // namespace bitale
