#include "runtime/recomputed.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "bitale/error.h"
#include "graph/base/options.h"
#include "runtime/figures.h"
#include "runtime/memory/limit.h"
#include "runtime/micro_batched.h"
#include "runtime/report.h"
#include "runtime/storage/host_memory.h"

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
    : function_(function), frames_(function.program, function.signature) {
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
        Planned& planned = ways_.emplace_back();
        planned.whole = std::move(way);
        planned.how = how;
        planned.values = values;
    }
}

Recomputed::~Recomputed() = default;

MemoryPlan Recomputed::plan_of(const Function::State& way, const CallSizes& sizes) const {
    const Build build = build_of(way);
    Frames frames(way.program, way.signature);
    std::vector<std::int64_t> symbols = sizes.symbols;
    symbols.reserve(1);  // of no symbol there is a pointer too
    const Frame& frame = frames.find(symbols.data());
    const Executable& whole = *function_.current.load(std::memory_order_acquire);
    return make_memory_plan(build, frame, symbols, whole.own_memory(*way.program, frame), sizes.steps);
}

double Recomputed::seconds_of(const Function::State& way, const CallSizes& sizes) const {
    return figures_of(*way.program, Lengths(*way.program, sizes.symbols), {}).seconds;
}

std::string Recomputed::words_for(Way way, const CallSizes& sizes, double seconds) const {
    const double whole = seconds_of(function_, sizes);
    const Planned& of = planned(way);
    std::size_t values = of.values;
    if (way.in_parts) values = of.parts.load()->computed_again();
    const std::string what = of.how.segments == 0
                                 ? std::string("between products, which are kept")
                                 : fmt::format("in all but the last of {} segments", of.how.segments);
    return fmt::format("gradients compute {} value{} again{}, {}; predicted are {} instead of {}, {:+.0f} %",
                       values, values == 1 ? "" : "s", way.in_parts ? " of each part" : "", what,
                       time_in_words(seconds), time_in_words(whole),
                       whole > 0 ? 100 * (seconds / whole - 1) : 0);
}

MemoryPlan Recomputed::memory_plan(Way way, const CallSizes& sizes) const {
    const Planned& of = planned(way);
    if (!way.in_parts) {
        MemoryPlan plan = plan_of(*of.whole, sizes);
        plan.recomputed = words_for(way, sizes, seconds_of(*of.whole, sizes));
        return plan;
    }
    const MicroBatched& parts = *of.parts.load();
    MemoryPlan plan = parts.memory_plan(sizes.symbols);
    plan.recomputed = words_for(way, sizes, parts.seconds_of(sizes.symbols, plan.micro_batch));
    return plan;
}

std::string Recomputed::refusal(const CallSizes& sizes) const {
    if (ways_.empty()) return "";
    std::int64_t least = INT64_MAX;
    bool in_parts = false;
    for (const Planned& of : ways_) {
        if (const std::int64_t bytes = plan_of(*of.whole, sizes).peak_bytes; bytes < least) {
            least = bytes;
            in_parts = false;
        }
        const MicroBatched* const parts = of.parts.load();  // none that nobody has tried
        if (const std::int64_t bytes = parts ? parts->least_bytes(sizes.symbols, sizes.steps) : INT64_MAX;
            bytes < least) {
            least = bytes;
            in_parts = true;
        }
    }
    return fmt::format("\nWhere gradients compute values again{}, it needs {} ({} bytes).",
                       in_parts ? " a row of the batch at a time" : "", bytes_text(least), least);
}

std::size_t Recomputed::passes() {
    const std::lock_guard lock(function_.waiting);
    if (!passes_) passes_ = passes_over_parts(function_);
    return *passes_;
}

MicroBatched* Recomputed::parts_of(Planned& of) {
    const std::lock_guard lock(function_.waiting);
    if (!of.owned && !of.has_no_parts) {
        try {
            auto parts = std::make_unique<MicroBatched>(function_, 0, of.how);
            of.has_no_parts = parts->computed_again() == 0;
            if (!of.has_no_parts) of.owned = std::move(parts);
        } catch (const GraphError&) {
            of.has_no_parts = true;
        }
        of.parts.store(of.owned.get());
    }
    return of.owned.get();
}

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

}  // namespace

double Recomputed::seconds_in_parts(MicroBatched* parts, const CallSizes& sizes, const Known& known) const {
    if (!parts) return never;
    return parts->predicted_seconds(sizes.symbols, sizes.steps, known.limit, known.room).value_or(never);
}

bool Recomputed::fits(Known& known, int way, const CallSizes& sizes) const {
    Need& need = known.needs[static_cast<std::size_t>(way)];
    if (need.peak == 0) {
        const bool on_host = function_.current.load(std::memory_order_acquire)->ledger() == &host_ledger();
        const MemoryPlan plan = plan_of(*ways_[static_cast<std::size_t>(way)].whole, sizes);
        using Kind = MemoryPlan::Kind;
        for (const MemoryPlan::Buffer& b : plan.buffers) {
            if (b.on_host) continue;
            // A library of convolutions tells its workspace once it has it.
            if (b.kind == Kind::shared ||
                (on_host && (b.kind == Kind::argument || b.kind == Kind::constant)) ||
                (!on_host && b.kind == Kind::workspace && b.name == "cuDNN"))
                need.alive += b.reserved;
            else if (b.kind == Kind::constant || b.kind == Kind::control)
                need.once_compiled += b.reserved;
        }
        need.peak = plan.peak_bytes;
    }
    const Function::State& whole = *ways_[static_cast<std::size_t>(way)].whole;
    const std::int64_t alive =
        need.alive + (is_compiled({way, false}) ? need.once_compiled : 0) +
        function_.current.load(std::memory_order_acquire)->workspace_alive(*whole.program);
    return need.peak <= known.limit && need.peak - alive <= known.room;
}

// A smaller limit never leads to a larger peak: what is predicted of a way does not depend on the limit, or
// grows as it becomes smaller, and what fits a smaller one fits a larger one. That parts take at least as
// long as all rows at once is part of it, and saves most of the planning.
std::optional<Recomputed::Way> Recomputed::fastest_that_fits(Known& known, const CallSizes& sizes) {
    std::vector<std::pair<double, int>> order;
    for (std::size_t k = 0; k < ways_.size(); ++k) {
        double& seconds = known.needs[k].seconds;
        if (seconds < 0) seconds = seconds_of(*ways_[k].whole, sizes);
        order.emplace_back(seconds, static_cast<int>(k));
    }
    std::sort(order.begin(), order.end());
    std::optional<Way> way;
    double best = never;
    for (const auto& [seconds, k] : order) {
        if (!fits(known, k, sizes)) continue;
        way = Way{k, false};
        best = seconds;
        break;
    }
    // Each pass but the last computes the forward pass up to where it ends: more than one of all of it
    // together, which is the most that gradients compute again. There may be a hundred, which take long to
    // plan.
    constexpr std::size_t most_passes = 3;
    if (const std::size_t over_parts = passes(); over_parts == 0 || over_parts > most_passes) return way;
    const double whole = seconds_of(function_, sizes);
    if (whole > best) return way;
    const double in_parts = std::max(whole, seconds_in_parts(planned_parts(function_), sizes, known));
    if (in_parts <= best) {
        best = in_parts;
        if (best < never) way = std::nullopt;
    }
    for (const auto& [seconds, k] : order) {
        if (seconds >= best) break;
        MicroBatched* const parts = parts_of(ways_[static_cast<std::size_t>(k)]);
        const double needed = std::max(seconds, seconds_in_parts(parts, sizes, known));
        if (needed >= best) continue;
        way = Way{k, true};
        best = needed;
    }
    return way;
}

Recomputed::Known Recomputed::found(const CallSizes& sizes) const {
    std::vector<std::int64_t> symbols = sizes.symbols;
    symbols.reserve(1);
    const std::lock_guard lock(planning_);
    Known own;
    own.frame = frames_.find(symbols.data()).number;
    own.argument_bytes = sizes.argument_bytes;
    own.steps = sizes.steps;
    for (const Known& k : known_)
        if (k.frame == own.frame && k.argument_bytes == own.argument_bytes && k.steps == own.steps) return k;
    own.needs.resize(ways_.size());
    return own;
}

void Recomputed::remember(const Known& known) {
    constexpr std::size_t most_known = 16;
    const std::lock_guard lock(planning_);
    const auto at = std::find_if(known_.begin(), known_.end(), [&](const Known& k) {
        return k.frame == known.frame && k.argument_bytes == known.argument_bytes && k.steps == known.steps;
    });
    if (at != known_.end())
        *at = known;
    else if (known_.size() < most_known)
        known_.push_back(known);
    else
        known_[next_known_++ % most_known] = known;
}

std::optional<Recomputed::Way> Recomputed::known(const CallSizes& sizes, std::int64_t limit) const {
    const Known own = found(sizes);
    if (own.limit != limit || own.room != INT64_MAX || !own.way) return std::nullopt;
    return is_compiled(*own.way) ? own.way : std::nullopt;
}

std::optional<Recomputed::Way> Recomputed::way_for(const CallSizes& sizes, std::int64_t limit,
                                                   std::int64_t room) {
    if (ways_.empty()) return std::nullopt;
    Known own = found(sizes);
    if (own.limit != limit || own.room != room) {
        own.limit = limit;
        own.room = room;
        own.way = std::nullopt;
        if (room < INT64_MAX || plan_of(function_, sizes).peak_bytes > limit)
            own.way = fastest_that_fits(own, sizes);
        remember(own);
    }
    return own.way;
}

// Planning keeps some memory itself, which the next call finds taken: it gets the same way as this one.
std::optional<Recomputed::Way> Recomputed::way_on_device(const CallSizes& sizes, std::int64_t limit) {
    constexpr int most_times = 4;
    std::optional<Way> way;
    std::int64_t room = INT64_MAX;
    for (int time = 0; time < most_times; ++time) {
        const std::int64_t now = room_on_device();
        if (time > 0 && now >= room) break;
        room = now;
        way = way_for(sizes, limit, room);
    }
    return way;
}

void Recomputed::compile(Way way) {
    const Planned& of = planned(way);
    const std::lock_guard lock(function_.waiting);
    if (way.in_parts)
        of.parts.load()->prepare();
    else if (!of.whole->executable)
        prepare_program(*of.whole);
}

bool Recomputed::is_compiled(Way way) const {
    const Planned& of = planned(way);
    if (!way.in_parts) return of.whole->current.load(std::memory_order_acquire) != nullptr;
    const MicroBatched* const parts = of.parts.load();
    return parts && parts->is_prepared();
}

Executable& Recomputed::executable(Way way) const {
    const Planned& of = planned(way);
    if (way.in_parts) return *of.parts.load();
    return *of.whole->current.load(std::memory_order_acquire);
}

const std::vector<SharedUse>& Recomputed::shared(Way way) const {
    return way.in_parts ? planned(way).parts.load()->shared() : function_.shared;
}

std::int64_t Recomputed::room_on_device() {
    const std::int64_t limit = options().memory_limit;
    Executable& whole = *function_.current.load(std::memory_order_acquire);
    const MemoryLedger* const ledger = whole.ledger();
    if (limit <= 0 || !ledger) return INT64_MAX;
    MicroBatched* parts = nullptr;
    {
        const std::lock_guard lock(function_.waiting);
        parts = function_.parts;
    }
    const CallLock lock(*function_.device, function_.shared);
    // What these say that their arenas took is not what they hold now: they hold nothing after this.
    whole.drop_arena();
    if (parts) parts->drop_arena();
    for_each_executable([](Executable* executable) { executable->drop_arena(); });
    if (ledger == &host_ledger()) {
        trim_host_memory();
        IdleMemory::give_all_back();
    }
    return limit - ledger->now();
}

std::string Recomputed::report(Detail detail) const {
    const std::string first =
        function_.memory_limit > 0
            ? fmt::format("\nFor calls that do not fit {} at once", bytes_text(function_.memory_limit))
            : std::string("\nFor calls that do not fit the device's limit at once");
    std::string s;
    for (int k = 0; k < static_cast<int>(ways_.size()); ++k) {
        const Planned& of = ways_[static_cast<std::size_t>(k)];
        CallSizes sizes;
        if (is_compiled({k, false})) {
            sizes.symbols = executable({k, false}).last_symbols();
            s += fmt::format("{}, {}:\n", first, words_for({k, false}, sizes, seconds_of(*of.whole, sizes)));
            s += report_of(*of.whole, detail);
        }
        const MicroBatched* const parts = of.parts.load();
        if (const std::int64_t rows = parts ? parts->last_rows() : 0; rows > 0) {
            sizes.symbols = parts->last_symbols();
            s += fmt::format("{}, {}:\n", first,
                             words_for({k, true}, sizes, parts->seconds_of(sizes.symbols, rows)));
            s += parts->report(detail);
        }
    }
    return s;
}

Recomputed* ways_of(Function::State& function) {
    if (!function.program || function.micro_batch > 0) return nullptr;
    const std::lock_guard lock(function.waiting);
    if (!function.recomputed) function.recomputed = std::make_shared<Recomputed>(function);
    return function.recomputed->is_empty() ? nullptr : function.recomputed.get();
}

std::int64_t largest_arena_of(Function::State& function) {
    const std::lock_guard lock(function.waiting);
    const std::lock_guard turn(function.device->turns());
    std::int64_t bytes = function.current.load(std::memory_order_acquire)->arena_bytes();
    if (function.made_for_limit) bytes = std::max(bytes, function.made_for_limit->arena_bytes());
    if (function.recomputed)
        function.recomputed->for_each_executable(
            [&](const Executable* executable) { bytes = std::max(bytes, executable->arena_bytes()); });
    return bytes;
}

}  // namespace bitale
