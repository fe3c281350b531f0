// How many rows of a batch are computed at a time: by exact plans of the parts.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "codegen/group/values.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "graph/ir/array_bytes.h"
#include "graph/ir/shared.h"
#include "graph/types/saturated.h"
#include "runtime/figures.h"
#include "runtime/micro_batched.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

namespace {

constexpr std::int64_t tail_on_gpu = 64;  // of each block

// The pool has a block of its own for each size: those that the results of the last part, which may have
// fewer rows, take beside those of the others.
std::int64_t bytes_of_last(const Program& program, const Frame& part, const Frame& last) {
    const auto blocks = [&](const Frame& frame) {
        std::multiset<std::int64_t> all;
        for (std::size_t k = 0; k < program.outputs.size(); ++k)
            all.insert(pooled_bytes(bytes_of(program.outputs[k].dtype, frame.outputs[k])));
        return all;
    };
    std::multiset<std::int64_t> kept = blocks(part);
    std::int64_t bytes = 0;
    for (const std::int64_t block : blocks(last))
        if (const auto at = kept.find(block); at != kept.end())
            kept.erase(at);
        else
            bytes += block;
    return bytes;
}

}  // namespace

// Everything that lives during the call: what comes in and goes out, and the arenas and workspaces of all
// parts, which are kept from call to call.
MemoryPlan MicroBatched::plan_of(const Sizes& sizes, std::int64_t rows, std::int64_t steps) const {
    std::int64_t peak = 0;
    bool on_gpu = false;
    std::map<std::string, std::int64_t> workspaces;  // of libraries of a GPU, one for all parts
    MemoryPlan largest;
    const auto add = [&](const Function::State& part) {
        const Build build = build_of(part);
        const std::vector<std::int64_t> symbols = symbols_of_part(build.signature, sizes, rows);
        Frames frames(build.program, build.signature);
        const Frame& frame = frames.find(symbols.data());
        // The part before the last one, which may have fewer rows, leaves what its products needed.
        const std::int64_t last = rows < sizes.all_rows && &part != finale_.get() ? sizes.all_rows % rows : 0;
        Frames frames_of_last(build.program, build.signature);
        const Frame* of_last = nullptr;
        if (last > 0) {
            const std::vector<std::int64_t> symbols_of_last = symbols_of_part(build.signature, sizes, last);
            of_last = &frames_of_last.find(symbols_of_last.data());
        }
        const OwnMemory own = executable_for(part).own_memory(*build.program, frame, of_last);
        on_gpu = own.place != OwnMemory::Place::host;
        MemoryPlan plan = make_memory_plan(build, frame, symbols, own);
        std::int64_t results = 0, outside = 0;
        for (const MemoryPlan::Buffer& b : plan.buffers) {
            if (b.on_host || b.offset >= 0) continue;
            // On a GPU each part has copies of its arguments and of its results.
            if (b.kind == MemoryPlan::Kind::result && !on_gpu) results += b.reserved;
            if (b.kind == MemoryPlan::Kind::workspace && on_gpu) {
                outside += b.reserved;
                workspaces[b.name] = std::max(workspaces[b.name], b.reserved);
            }
            if (b.kind == MemoryPlan::Kind::shared || (b.kind == MemoryPlan::Kind::argument && !on_gpu))
                outside += b.reserved;
        }
        // The pool keeps those of a pass when the next begins; those of the finale are the call's.
        if (&part != finale_.get()) peak += results;
        if (!on_gpu && of_last) peak += bytes_of_last(*build.program, frame, *of_last);
        peak += plan.peak_bytes - results - outside;
        if (largest.steps.empty() || plan.peak_bytes > largest.peak_bytes) largest = std::move(plan);
    };
    for (const Part& part : passes_) add(*part);
    add(*finale_);
    for (const auto& [library, bytes] : workspaces) peak += bytes;
    for (const SharedUse& use : function_.shared) peak += use.variable->value.bytes();
    peak += total_bytes_ + (on_gpu ? tail_on_gpu * static_cast<std::int64_t>(shared_.size()) : 0);
    if (!on_gpu) {
        peak += argument_bytes(sizes) + result_bytes(sizes, steps) + padding_bytes();
        list_results(largest, sizes, steps);
    }
    largest.function = build_.signature.function;
    largest.peak_bytes = peak;
    largest.limit = build_.memory_limit;
    largest.micro_batch = rows;
    largest.notes.push_back(fmt::format(
        "the {} rows of the batch are computed {} at a time; buffers and steps are those of the part "
        "that takes most, the peak is that of the whole call",
        sizes.all_rows, rows));
    return largest;
}

// Of the arrays that a call has beside those that plans count: totals are as large as these say and a little
// more, each has an element that it begins with, and there are the numbers of rows.
std::int64_t MicroBatched::padding_bytes() const {
    constexpr int numbers = 4;                // one of them twice, where the next takes its place
    constexpr std::int64_t constants = 1024;  // of a part, more than their bytes
    return numbers * block_of_array(bytes_of(DType::int64)) +
           constants * static_cast<std::int64_t>(passes_.size() + 1) + blocks_of_totals() - total_bytes_;
}

std::int64_t MicroBatched::blocks_of_beginnings() const {
    std::int64_t bytes = 0;
    for (const std::vector<TotalType>& types : total_types_)
        for (const TotalType& type : types) bytes += block_of_array(bytes_of(type.dtype));
    return bytes;
}

std::int64_t MicroBatched::blocks_of_totals() const {
    std::int64_t bytes = blocks_of_beginnings();
    for (const std::vector<TotalType>& types : total_types_)
        for (const TotalType& type : types) bytes += block_of_array(bytes_of(type.dtype, type.shape));
    return bytes;
}

// Those of the call in place of those of a part, which do not stay.
void MicroBatched::list_results(MemoryPlan& plan, const Sizes& sizes, std::int64_t steps) const {
    std::erase_if(plan.buffers,
                  [](const MemoryPlan::Buffer& b) { return b.kind == MemoryPlan::Kind::result; });
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        const Node& node = *build_.plain->outputs[k];
        MemoryPlan::Buffer buffer;
        buffer.kind = MemoryPlan::Kind::result;
        buffer.name = fmt::format("output {}", k);
        buffer.dtype = outputs_[k].dtype;
        buffer.shape = shape_of_output(k, sizes);
        buffer.formula = text_of(outputs_[k].shape);
        if (steps > 0) buffer.shape.insert(buffer.shape.begin(), steps);
        buffer.bytes = bytes_of(buffer.dtype);
        for (const std::int64_t length : buffer.shape) buffer.bytes *= length;
        buffer.reserved = pooled_bytes(buffer.bytes);
        buffer.last = static_cast<int>(plan.steps.size()) - 1;
        buffer.where = describe(node);
        buffer.reason = steps > 0 ? "a result of all steps of a loop" : "a result of the call";
        plan.buffers.push_back(std::move(buffer));
    }
    std::stable_sort(plan.buffers.begin(), plan.buffers.end(),
                     [](const auto& a, const auto& b) { return a.reserved > b.reserved; });
}

std::int64_t MicroBatched::argument_bytes(const Sizes& sizes) const {
    Build whole = build_;
    whole.program = nullptr;
    std::int64_t bytes = 0;
    for (const MemoryPlan::Buffer& b : make_memory_plan(whole, sizes.symbols).buffers)
        if (b.kind == MemoryPlan::Kind::argument) bytes += b.reserved;
    return bytes;
}

std::int64_t MicroBatched::result_bytes(const Sizes& sizes, std::int64_t steps) const {
    std::int64_t all = 0;
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
        std::int64_t bytes = bytes_of(outputs_[k].dtype);
        for (const std::int64_t length : shape_of_output(k, sizes)) bytes *= length;
        // Of a loop, the results of all steps behind each other, and those of one.
        all += pooled_bytes(bytes) + (steps > 0 ? pooled_bytes(saturated::product(bytes, steps)) : 0);
    }
    return all;
}

MemoryPlan MicroBatched::memory_plan(const std::vector<std::int64_t>& symbols) const {
    const Sizes sizes = sizes_of(symbols);
    if (rows_ > 0) return plan_of(sizes, std::min(sizes.all_rows, rows_), 0);
    // What other functions leave of the device's limit only a call tells.
    std::int64_t limit = options().memory_limit > 0 ? options().memory_limit : INT64_MAX;
    if (build_.memory_limit > 0) limit = std::min(limit, build_.memory_limit);
    const std::vector<std::int64_t> choices = rows_to_try(sizes.all_rows);
    if (const std::int64_t last = last_rows_.load(); last > 0 && symbols == last_symbols_.get()) {
        MemoryPlan plan = plan_of(sizes, last, 0);
        if (plan.peak_bytes <= limit) return plan;
    }
    Needs needs = needs_of(sizes, 0);
    const std::size_t choice = fastest_that_fits(needs, sizes, limit);
    remember(needs);
    if (choice == choices.size()) refuse(sizes, 0, limit);
    return plan_of(sizes, choices[choice], 0);
}

// Where no call says otherwise: of all rows if no number of them fits.
MicroBatched::Expected MicroBatched::expected() const {
    std::vector<std::int64_t> symbols = last_symbols_.get();
    const bool has_run = last_rows_.load() > 0 && symbols.size() == build_.signature.sources.size();
    if (!has_run) {
        symbols.clear();
        for (const SizeSource& source : build_.signature.sources)
            symbols.push_back(source.axis < 0 ? 0 : std::llround(typical(source.value)));
    }
    Expected expected{sizes_of(symbols), 0};
    expected.rows = expected.sizes.all_rows;
    try {
        expected.rows = memory_plan(symbols).micro_batch;
    } catch (const MemoryRefusal&) {
        return expected;
    }
    return expected;
}

// Few parts are fast, and those that leave no narrower tile over. Their number, and not that of rows, is what
// is tried, each up to 32 and then each that is a twelfth larger: the last part is seldom much smaller than
// the others, and a smaller limit never leads to a larger peak, for the choices do not depend on it. Of many
// rows there are whole sixteens, for lanes and tiles.
std::vector<std::int64_t> MicroBatched::rows_to_try(std::int64_t all_rows) {
    constexpr std::int64_t all_counts = 32, lanes = 16;
    std::vector<std::int64_t> choices;
    for (std::int64_t parts = 1;; parts += parts < all_counts ? 1 : (parts + 11) / 12) {
        std::int64_t rows = std::max<std::int64_t>(1, (all_rows + parts - 1) / parts);
        if (parts > 1 && rows > 2 * lanes) rows = (rows + lanes - 1) / lanes * lanes;
        rows = std::min(rows, std::max<std::int64_t>(1, all_rows));
        if (choices.empty() || rows < choices.back()) choices.push_back(rows);
        if (rows == 1) return choices;
    }
}

MicroBatched::Needs MicroBatched::needs_of(const Sizes& sizes, std::int64_t steps) const {
    Needs needs;
    needs.slots = sizes.slots;
    needs.argument_bytes = sizes.argument_bytes;
    needs.steps = steps;
    {
        const std::lock_guard lock(planning_);
        for (std::size_t p = 0; p < frames_.size(); ++p) {
            const Signature& part = (p < passes_.size() ? *passes_[p] : *finale_).signature;
            std::vector<std::int64_t> symbols = symbols_of_part(part, sizes, sizes.all_rows);
            symbols.reserve(1);  // of no symbol there is a pointer too
            needs.frames.push_back(frames_[p]->find(symbols.data()).number);
        }
        if (const Needs* before = known(needs)) return *before;
    }
    needs.peaks.assign(rows_to_try(sizes.all_rows).size(), 0);
    needs.seconds.assign(needs.peaks.size(), 0);
    return needs;
}

MicroBatched::Needs* MicroBatched::known(const Needs& needs) const {
    const auto at =
        std::find_if(needs_.begin(), needs_.end(), [&](const Needs& n) { return n.is_of(needs); });
    return at == needs_.end() ? nullptr : &*at;
}

void MicroBatched::remember(const Needs& needs) const {
    constexpr std::size_t most_kept = 16;
    const std::lock_guard lock(planning_);
    if (Needs* before = known(needs)) {
        *before = needs;
    } else if (needs_.size() < most_kept) {
        needs_.push_back(needs);
    } else {
        needs_[next_needs_++ % most_kept] = needs;
    }
}

std::int64_t MicroBatched::peak_of(Needs& needs, const Sizes& sizes, std::size_t choice) const {
    std::int64_t& peak = needs.peaks.at(choice);
    if (peak == 0) peak = plan_of(sizes, rows_to_try(sizes.all_rows)[choice], needs.steps).peak_bytes;
    return peak;
}

std::size_t MicroBatched::first_that_fits(Needs& needs, const Sizes& sizes, std::size_t choice,
                                          std::int64_t limit) const {
    while (choice < needs.peaks.size() && peak_of(needs, sizes, choice) > limit) ++choice;
    return choice;
}

double MicroBatched::seconds_of(Needs& needs, const Sizes& sizes, std::size_t choice) const {
    double& seconds = needs.seconds.at(choice);
    if (seconds == 0) seconds = seconds_of(sizes, rows_to_try(sizes.all_rows)[choice]);
    return seconds;
}

// By predictions that differ by less than a twentieth it is the fewest parts. All that fit are compared,
// until several in turn take much longer: a smaller limit leaves fewer of them.
std::size_t MicroBatched::fastest_that_fits(Needs& needs, const Sizes& sizes, std::int64_t limit) const {
    constexpr double twentieths = 20.0, much_longer = 1.5;
    constexpr int most_in_turn = 4;
    const auto class_of = [&](std::size_t choice) {
        return std::floor(twentieths * std::log(seconds_of(needs, sizes, choice)));
    };
    std::size_t best = first_that_fits(needs, sizes, 0, limit);
    int slower = 0;
    for (std::size_t k = best + 1; k < needs.peaks.size() && slower < most_in_turn; ++k) {
        const bool is_much = seconds_of(needs, sizes, k) > much_longer * seconds_of(needs, sizes, best);
        slower = is_much ? slower + 1 : 0;
        if (class_of(k) < class_of(best) && peak_of(needs, sizes, k) <= limit) best = k;
    }
    return best;
}

std::optional<double> MicroBatched::predicted_seconds(const std::vector<std::int64_t>& symbols,
                                                      std::int64_t steps, std::int64_t limit,
                                                      std::int64_t room) const {
    const Sizes sizes = sizes_of(symbols);
    if (room < INT64_MAX) limit = std::min(limit, room + outside_bytes(sizes));
    Needs needs = needs_of(sizes, steps);
    const std::size_t choice = fastest_that_fits(needs, sizes, limit);
    remember(needs);
    return choice < needs.peaks.size() ? std::optional(seconds_of(needs, sizes, choice)) : std::nullopt;
}

std::int64_t MicroBatched::least_bytes(const std::vector<std::int64_t>& symbols, std::int64_t steps) const {
    const Sizes sizes = sizes_of(symbols);
    Needs needs = needs_of(sizes, steps);
    const std::int64_t least = peak_of(needs, sizes, needs.peaks.size() - 1);
    remember(needs);
    return least;
}

double MicroBatched::seconds_of(const std::vector<std::int64_t>& symbols, std::int64_t rows) const {
    return seconds_of(sizes_of(symbols), rows);
}

double MicroBatched::seconds_of(const Sizes& sizes, std::int64_t rows) const {
    const std::int64_t last = rows > 0 ? sizes.all_rows % rows : 0;
    const auto seconds = [&](const Function::State& part, std::int64_t of_rows) {
        const Lengths lengths(*part.program, symbols_of_part(part.signature, sizes, of_rows));
        return figures_of(*part.program, lengths, {}).seconds;
    };
    double all = seconds(*finale_, rows);
    for (const Part& part : passes_) {
        all += static_cast<double>(rows > 0 ? sizes.all_rows / rows : 1) * seconds(*part, rows);
        if (last > 0) all += seconds(*part, last);
    }
    return all;
}

bool MicroBatched::has_computed(std::span<const Array> arguments, std::int64_t steps) const {
    return needs_of(sizes_of(arguments), steps).has_run;
}

// Of what a plan counts, that which is alive before the call: what comes in, and totals of calls before. On a
// GPU arguments are copied, and totals have a place there once a call has run.
std::int64_t MicroBatched::outside_bytes(const Sizes& sizes) const {
    std::int64_t bytes = 0;
    for (const SharedUse& use : function_.shared) bytes += use.variable->value.bytes();
    if (executable_for(*finale_).ledger() == &host_ledger())
        return bytes + argument_bytes(sizes) + (is_prepared_.load() ? blocks_of_beginnings() : 0) +
               (has_totals_.load() ? blocks_of_totals() - blocks_of_beginnings() : 0);
    bytes += tail_on_gpu * static_cast<std::int64_t>(function_.shared.size());
    std::int64_t workspace = 0;
    for (std::size_t p = 0; p <= passes_.size(); ++p)
        workspace = std::max(workspace, executable_for(*finale_).workspace_alive(
                                            *(p < passes_.size() ? passes_[p] : finale_)->program));
    bytes += workspace;
    if (last_rows_.load() == 0) return bytes;
    return bytes + total_bytes_ +
           tail_on_gpu * static_cast<std::int64_t>(shared_.size() - function_.shared.size());
}

// The peak that the device's limit leaves a call, with what is alive already.
std::int64_t MicroBatched::room_on_device(const Sizes& sizes, std::int64_t results) {
    const std::int64_t limit = options().memory_limit;
    const MemoryLedger* ledger = executable_for(*finale_).ledger();
    if (limit <= 0 || !ledger) return INT64_MAX;
    drop_arena();
    if (ledger == &host_ledger()) {
        trim_host_memory();
        IdleMemory::give_all_back();
    }
    return limit - ledger->now() + outside_bytes(sizes) + (ledger == &host_ledger() ? results : 0);
}

// Of parts of as many rows as the user asked for.
void MicroBatched::require_own_limit(const Sizes& sizes, std::int64_t steps) const {
    if (build_.memory_limit > 0)
        refuse_over_limit(plan_of(sizes, std::min(sizes.all_rows, rows_), steps), build_.where);
}

void MicroBatched::require_room(const std::vector<std::int64_t>& symbols, std::int64_t steps) {
    const Sizes sizes = sizes_of(symbols);
    const std::int64_t limit = build_.memory_limit;
    if (rows_ > 0) return require_own_limit(sizes, steps);
    const std::int64_t room = room_on_device(sizes, 0);
    Needs needs = needs_of(sizes, steps);
    const std::size_t choice =
        first_that_fits(needs, sizes, 0, std::min(room, limit > 0 ? limit : INT64_MAX));
    remember(needs);
    if (choice == needs.peaks.size()) refuse(sizes, steps, room);
}

void MicroBatched::refuse(const Sizes& sizes, std::int64_t steps, std::int64_t device_room) const {
    const MemoryPlan plan = plan_of(sizes, 1, steps);
    refuse_over_limit(plan, build_.where);
    throw MemoryRefusal(refusal_text(
        fmt::format(
            "{}function {} on {} needs {} ({} bytes) for a row of its batch at a time, and memory_limit "
            "in BITALE_FLAGS, {}, leaves it {} beside what else is alive",
            build_.where.line ? build_.where.text() + ": " : "", in_quotes(plan.function),
            printable(plan.device), bytes_text(plan.peak_bytes), plan.peak_bytes,
            bytes_text(options().memory_limit), bytes_text(std::max<std::int64_t>(0, device_room))),
        plan));
}

std::vector<Array> MicroBatched::run(std::span<const Array> arguments, std::int64_t steps,
                                     std::int64_t results) {
    const Sizes sizes = sizes_of(arguments);
    last_symbols_.set(sizes.symbols);
    const std::int64_t limit = build_.memory_limit;
    if (rows_ > 0) {
        require_own_limit(sizes, steps);
        return run_in_parts(arguments, sizes, rows_);
    }
    const std::int64_t room = room_on_device(sizes, results);
    const std::int64_t least = std::min(room, limit > 0 ? limit : INT64_MAX);
    const std::vector<std::int64_t> choices = rows_to_try(sizes.all_rows);
    Needs needs = needs_of(sizes, steps);
    std::size_t choice = fastest_that_fits(needs, sizes, least);
    if (choice < choices.size() && room == INT64_MAX) needs.has_run = true;
    remember(needs);
    for (; choice < choices.size(); choice = first_that_fits(needs, sizes, choice + 1, least)) {
        try {
            return run_in_parts(arguments, sizes, choices[choice]);
        } catch (const OutOfMemory&) {
            // On a GPU, variables that had no place there yet take what seemed to be left.
            if (room == INT64_MAX || choice + 1 == choices.size()) throw;
            drop_arena();
        }
    }
    refuse(sizes, steps, room);
}

namespace {

// With the function's lock.
void plan_parts(Function::State& state) {
    if (!state.parts && state.no_parts.empty()) {
        try {
            auto parts = std::make_unique<MicroBatched>(state, 0);
            state.parts = parts.get();
            state.made_for_limit = std::move(parts);
        } catch (const GraphError& e) {
            state.no_parts = e.what();
        }
    }
}

}  // namespace

MicroBatched* planned_parts(Function::State& state) {
    const std::lock_guard lock(state.waiting);
    plan_parts(state);
    return state.parts;
}

MicroBatched& parts_for_limit(Function::State& state, const std::string& refusal) {
    const std::lock_guard lock(state.waiting);
    plan_parts(state);
    if (!state.parts) throw MemoryRefusal(refusal + "\nIt cannot be computed in parts: " + state.no_parts);
    state.parts->prepare();
    return *state.parts;
}

}  // namespace bitale
