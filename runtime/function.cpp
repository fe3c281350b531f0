// function(): from a user's expressions to something that can be called. The one file that sees every stage.
#include "bitale/function.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "codegen/pipeline.h"
#include "graph/base/border.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "graph/show/debugprint.h"
#include "graph/walk/traverse.h"
#include "ops/rules/phases.h"
#include "runtime/dump.h"
#include "runtime/memory/limit.h"
#include "runtime/report.h"
#include "runtime/state.h"
#include "runtime/validate.h"

namespace bitale {

namespace {

const ApiBorder building("to build the function"), calling("for the call; shared variables are as before it"),
    looping("for the loop; the steps before are complete"), reporting("for a report");

std::vector<SharedUse> shared_variables(const Graph& graph) {
    std::map<SharedPtr, bool> written;
    for (const NodePtr& node : topological(graph.roots()))
        if (SharedPtr s = shared_of(node)) written.emplace(std::move(s), false);
    for (const SharedUpdate& u : graph.updates) written[u.target] = true;
    std::vector<SharedUse> uses;
    for (const auto& [variable, is_written] : written) uses.push_back({variable, is_written});
    return uses;
}

// The inputs and checks of the graph as it was before any rewrite: code is generated for lengths that the
// checks have found equal.
void complete(Program& program, const Graph& graph, const Signature& signature) {
    program.size_sources = signature.sources;
    program.length_checks = signature.checks;
    BITALE_CHECK(program.inputs.size() == signature.inputs.size(), "the program lost an input");
    for (std::size_t i = 0; i < signature.inputs.size(); ++i) program.inputs[i] = signature.inputs[i].type;
    BITALE_CHECK(program.outputs.size() == graph.outputs.size(), "the program lost an output");
}

std::optional<Target> target_of(const Function::State& state) {
    std::optional<Target> target = state.device->target();
    if (target) target->precision = state.precision;
    return target;
}

struct Compiled {
    std::shared_ptr<const Program> program;
    std::vector<Kernel> kernels;
    std::optional<TuningNotes> tuning;
};

// From the optimised graph to a Program. `numbers`: values of the symbols of a call, none before the first.
Compiled compile(const Function::State& state, const Target& target,
                 const std::map<std::uint64_t, std::int64_t>& numbers) {
    Compiled r;
    std::optional<Autotuner> tuner;
    if (state.autotune && state.device->timing().why_not.empty())
        tuner.emplace(*state.device, target, numbers);
    Program program = generate(*state.optimised, target, tuner ? &*tuner : nullptr);
    complete(program, *state.optimised, state.signature);
    if (tuner) {
        r.tuning = tuner->notes();
        r.tuning->compiler_runs += state.tuning.compiler_runs;
    }
    r.program = std::make_shared<const Program>(std::move(program));
    r.kernels = kernel_list(*r.program, state.device->name());
    return r;
}

void take(Function::State& state, Compiled compiled) {
    state.program = std::move(compiled.program);
    state.kernels = std::make_unique<const std::vector<Kernel>>(std::move(compiled.kernels));
    if (compiled.tuning) state.tuning = std::move(*compiled.tuning);
}

std::unique_ptr<Executable> prepared(const Function::State& state, std::shared_ptr<const Program> program) {
    Build build = build_of(state);
    build.program = std::move(program);
    return state.device->prepare(std::move(build));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::shared_ptr<Function::State> build(const std::vector<Input>& inputs, const std::vector<Expr>& outputs,
                                       const FunctionOptions& wishes, Where where) {
    const auto start = std::chrono::steady_clock::now();
    check_disabled();
    auto state = std::make_shared<Function::State>();
    state->device = &device_named(wishes.device);
    Request request = validate(inputs, outputs, wishes, where);
    state->name = request.graph.name;
    state->where = where;
    state->signature = std::move(request.signature);
    state->inputs = state->signature.inputs;
    state->defaults = std::move(request.defaults);
    state->precision = wishes.precision;
    state->profile = wishes.profile;
    state->memory_limit = wishes.memory_limit.bytes;
    state->strict_math = options().strict_math;
    state->autotune = wishes.autotune.value_or(options().autotune);
    state->dump_folder = make_dump_folder(state->name);
    request.graph.dump_folder = state->dump_folder;
    state->plain = std::make_shared<const Graph>(std::move(request.graph));
    state->shared = shared_variables(*state->plain);

    if (std::optional<Target> target = target_of(*state)) {
        Graph graph = *state->plain;
        optimize(graph);
        state->optimised = std::make_shared<const Graph>(std::move(graph));
        take(*state, compile(*state, *target, {}));
        state->waits_for_lengths = state->tuning.waiting > 0;
    }
    dump_before_compiling(*state);
    state->executable = prepared(*state, state->program);
    state->current.store(state->executable.get());
    refuse_over_limit(*state);
    state->compile_seconds = seconds_since(start);
    dump_report(*state);
    log(1, fmt::format("function {} on {}: {} kernels and library calls, {:.3f} s", state->name,
                       state->device->name(), state->kernels->size(), state->compile_seconds));
    if (logs(2))
        for (const Kernel& k : *state->kernels)
            log(2, fmt::format("  {}: {}", k.name, fmt::join(k.fused, ", ")));
    return state;
}

// What could not be measured before lengths were known is measured now; the function is compiled again where
// that changes a choice.
void measure_at_first_call(Function::State& state, std::span<const Array> arguments) {
    if (!state.waits_for_lengths.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(state.waiting);
    if (!state.waits_for_lengths.load()) return;
    const auto start = std::chrono::steady_clock::now();
    Arguments binder(state.signature);
    std::vector<std::int64_t> values(binder.symbols());
    std::vector<const void*> data(arguments.size());
    binder.bind(arguments, values.data(), data.data());
    std::map<std::uint64_t, std::int64_t> numbers;
    for (std::size_t s = 0; s < values.size(); ++s) numbers[binder.symbol_ids()[s]] = values[s];
    Substitution lengths;
    for (const auto& [symbol, number] : numbers) lengths.emplace(symbol, Int(number));
    for (const LengthCheck& check : state.signature.checks)
        if (substitute(check.a, lengths) != substitute(check.b, lengths)) return;  // the call will say so
    const std::optional<Target> target = target_of(state);
    if (!target) throw CompileError("the host compiler disappeared");
    Compiled compiled = compile(state, *target, numbers);
    std::unique_ptr<Executable> executable = prepared(state, compiled.program);
    {
        // Other threads may be calling what there was until now; who holds its list of kernels keeps it.
        const Running running;
        state.kernels_before = std::move(state.kernels);
        take(state, std::move(compiled));
        state.executable_before = std::exchange(state.executable, std::move(executable));
        state.current.store(state.executable.get(), std::memory_order_release);
    }
    state.compile_seconds += seconds_since(start);
    dump_report(state);
    state.waits_for_lengths.store(false, std::memory_order_release);
}

Function::State& used(const std::shared_ptr<Function::State>& state) {
    if (!state)
        throw GraphError(
            "an empty Function is used, or one that was moved from; make one with function(...)");
    return *state;
}

// The arguments with the defaults of those left out; `storage` holds them when there are any.
std::span<const Array> completed(const Function::State& state, std::span<const Array> arguments,
                                 std::vector<Array>& storage) {
    if (arguments.size() >= state.inputs.size()) return arguments;
    storage.assign(arguments.begin(), arguments.end());
    for (std::size_t i = arguments.size(); i < state.inputs.size(); ++i) {
        if (!state.defaults[i])
            throw GraphError(
                fmt::format("function \"{}\" takes {} arguments, the call has {}: input {} at {} has no "
                            "default",
                            state.name, state.inputs.size(), arguments.size(),
                            in_quotes(state.inputs[i].name), state.inputs[i].where.text()));
        storage.push_back(*state.defaults[i]);
    }
    return storage;
}

void check_loop(const Function::State& state) {
    const bool scalar =
        !state.inputs.empty() && state.inputs[0].type.rank() == 0 && is_integer(state.inputs[0].type.dtype);
    if (!scalar)
        throw GraphError(
            fmt::format("loop needs a function whose first input is an integer scalar; \"{}\" has {}",
                        state.name, state.inputs.empty() ? "no inputs" : text_of(state.inputs[0].type)));
    for (std::size_t i = 1; i < state.inputs.size(); ++i)
        if (!state.defaults[i])
            throw GraphError(fmt::format("loop of \"{}\": input {} at {} has no default", state.name,
                                         in_quotes(state.inputs[i].name), state.inputs[i].where.text()));
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): users write options where they call.
Function function(const std::vector<Input>& inputs, const std::vector<Expr>& outputs, FunctionOptions options,
                  Where where) {
    return building([&] { return Function(build(inputs, outputs, options, where)); });
}

Function function(const std::vector<Input>& inputs, const Expr& output, FunctionOptions options,
                  Where where) {
    return building([&] { return function(inputs, std::vector<Expr>{output}, std::move(options), where); });
}

Function function(const std::vector<Input>& inputs, std::initializer_list<Expr> outputs,
                  FunctionOptions options, Where where) {
    return building([&] { return function(inputs, std::vector<Expr>(outputs), std::move(options), where); });
}

const Array& Results::operator[](std::size_t i) const {
    if (i >= values_.size())
        throw IndexError(values_.empty()
                             ? "the value of a function without outputs is used, or of results that "
                               "were moved from"
                             : fmt::format("output {} of a function with {} output{} is used", i,
                                           values_.size(), values_.size() == 1 ? "" : "s"));
    return values_[i];
}

Results Function::call(std::span<const Array> arguments) {
    return calling([&] {
        State& state = used(state_);
        state.device->check_runs(state.name, state.where);
        std::vector<Array> storage;
        const std::span<const Array> all = completed(state, arguments, storage);
        measure_at_first_call(state, all);
        return explaining(state, all, 0, [&] {
            const CallLock lock(*state.device, state.shared);
            return Results(state.current.load(std::memory_order_acquire)->run(all));
        });
    });
}

void Function::no_memory() { calling.fail(); }

namespace {

// `call` has the steps and what may stop them.
Results run_loop(Function::State& state, LoopCall call) {
    check_loop(state);
    state.device->check_runs(state.name, state.where);
    const Array zero = Array(std::int64_t{0}).as(state.inputs[0].type.dtype);
    std::vector<Array> storage;
    const std::span<const Array> all = completed(state, {&zero, 1}, storage);
    measure_at_first_call(state, all);
    std::int64_t done = 0;
    Results results = explaining(state, all, call.steps, [&] {
        CallLock lock(*state.device, state.shared);
        state.steps_done.store(0);
        call.arguments = all;
        call.lock = &lock;
        call.stops = &state.stops;
        call.stops_before = state.stops_answered.load();
        call.steps_done = &state.steps_done;
        call.own_steps_done = &done;
        return Results(state.current.load(std::memory_order_acquire)->loop(call));
    });
    // A request is used up by the loops that run and end by it, and by no other.
    if (done < call.steps && !(call.token && call.token->requested()))
        state.stops_answered.store(state.stops.load());
    return results;
}

Results loop_of(Function::State& state, const LoopCall& call) {
    return looping([&] { return run_loop(state, call); });
}

LoopCall steps_between(const Function::State& state, std::int64_t first, std::int64_t last) {
    LoopCall call;
    call.first = first;
    if (last > first && __builtin_sub_overflow(last, first, &call.steps))
        throw GraphError(
            fmt::format("loop of \"{}\": from {} to {} there are more steps than an int64 counts", state.name,
                        first, last));
    return call;
}

LoopCall watching(LoopCall call, const StopToken& stop) {
    call.token = stop;
    return call;
}

}  // namespace

Results Function::loop(std::int64_t first, std::int64_t last) {
    State& state = used(state_);
    return loop_of(state, steps_between(state, first, last));
}
Results Function::loop(std::int64_t first, std::int64_t last, const StopToken& stop) {
    State& state = used(state_);
    return loop_of(state, watching(steps_between(state, first, last), stop));
}
Results Function::loop(std::span<const std::int64_t> indices) {
    return loop_of(used(state_), LoopCall::over(indices));
}
Results Function::loop(std::span<const std::int64_t> indices, const StopToken& stop) {
    return loop_of(used(state_), watching(LoopCall::over(indices), stop));
}

void Function::request_stop() { used(state_).stops.fetch_add(1); }
std::int64_t Function::steps_done() const { return used(state_).steps_done.load(); }
const std::string& Function::name() const { return used(state_).name; }
const std::vector<Kernel>& Function::kernels() const {
    State& state = used(state_);
    const std::lock_guard lock(state.waiting);
    return *state.kernels;
}
const Function::State& Function::state() const { return used(state_); }
double Function::compile_seconds() const {
    State& state = used(state_);
    const std::lock_guard lock(state.waiting);
    return state.compile_seconds;
}
int Function::compiler_runs() const {
    State& state = used(state_);
    const std::lock_guard lock(state.waiting);
    return state.executable->compiler_runs() + state.tuning.compiler_runs;
}
std::string Function::report() const {
    State& state = used(state_);
    const std::lock_guard lock(state.waiting);
    return reporting([&] { return report_of(state); });
}

Profile Function::profile() const {
    const State& state = used(state_);
    const std::lock_guard lock(state.device->turns());
    return reporting([&] { return Profile{state.current.load(std::memory_order_acquire)->profile()}; });
}

std::int64_t Function::peak_bytes() const {
    const State& state = used(state_);
    std::int64_t bytes = 0;
    for (const SharedUse& use : state.shared) {
        const Reading reading(use.variable->turns);
        bytes += use.variable->value.bytes();
    }
    const std::lock_guard lock(state.device->turns());
    return bytes + state.current.load(std::memory_order_acquire)->arena_bytes();
}

std::string debugprint(const Function& f) {
    const Function::State& state = f.state();
    return reporting([&] { return debugprint((state.optimised ? *state.optimised : *state.plain).roots()); });
}

}  // namespace bitale
