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
#include "graph/base/float_mode.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "graph/ir/shared.h"
#include "graph/show/debugprint.h"
#include "graph/walk/traverse.h"
#include "ops/autodiff/saved.h"
#include "ops/rules/phases.h"
#include "runtime/dump.h"
#include "runtime/joined.h"
#include "runtime/memory/limit.h"
#include "runtime/report.h"
#include "runtime/state.h"
#include "runtime/validate.h"
#include "runtime/whole_or_in_parts.h"

namespace bitale {

namespace {

const ApiBorder building("to build the function"), calling("for the call; shared variables are as before it"),
    looping("for the loop; the steps before are complete");

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
    if (!target) return target;
    target->precision = state.precision;
    target->readable = !options().dump.empty() || options().debug_kernels;
    target->debug_lines = options().debug_kernels;
    return target;
}

// Opaque ops of the graph need routines, which not every device has.
void find_routines(const Function::State& state, const Graph& graph, Target& target) {
    const Nodes nodes = topological(graph.roots());
    const auto opaque = std::find_if(nodes.begin(), nodes.end(),
                                     [](const NodePtr& node) { return node->op->kind == OpKind::opaque; });
    if (opaque == nodes.end()) return;
    if (!target.has_routines)
        throw DeviceError((*opaque)->where,
                          fmt::format("function \"{}\" on {}: {} is not computed there; compute it by a "
                                      "function of its own with .device = \"cpu\", and put the result into a "
                                      "shared variable",
                                      state.name, state.device->name(), describe(**opaque)));
    state.device->find_routines(target);
}

struct Compiled {
    std::shared_ptr<const Program> program;
    std::vector<Kernel> kernels;
    std::optional<TuningNotes> tuning;
};

// From the optimised graph to a Program. `numbers`: values of the symbols of a call, none before the first.
Compiled generated(const Function::State& state, Target target, const Numbers& numbers) {
    find_routines(state, *state.optimised, target);
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

// Of a function whose lengths are known when it is built.
void keep_limit(Function::State& state) {
    if (state.micro_batch > 0) return refuse_over_limit(state);
    try {
        refuse_over_limit(state);
    } catch (const MemoryRefusal& refusal) {
        const CallSizes sizes{std::vector<std::int64_t>(state.signature.sources.size(), 0)};
        std::string text = refusal.what();
        Recomputed* const ways = ways_of(state);
        if (ways) {
            if (const std::optional<Recomputed::Way> way = ways->way_for(sizes, state.memory_limit))
                return ways->compile(*way);
            text += ways->refusal(sizes);
        }
        if (const MicroBatched* const parts = planned_parts(state))
            or_told(ways, sizes, [&] { return parts->memory_plan(sizes.symbols); });
        parts_for_limit(state, text);
    }
}

// That of the options, or of BITALE_FLAGS: a refusal says where the name stands.
Device& device_for(const FunctionOptions& wishes, Where where) {
    try {
        return device_named(wishes.device);
    } catch (const DeviceError& e) {
        if (!wishes.device.empty()) throw DeviceError(where, e.what());
        const bool has_semicolon = options().device.find(';') != std::string::npos;
        throw DeviceError(where, std::string("BITALE_FLAGS: ") + e.what() +
                                     (has_semicolon ? "; flags are separated by commas" : ""));
    }
}

// Evaluations, where a single image is common; the last minibatch of a training is rarely so short. Not where
// batches are split: then their length stays a number of rows.
bool has_version_of_single_rows(const Function::State& state) {
    return state.plain->updates.empty() && state.micro_batch == 0 && state.memory_limit == 0 &&
           options().memory_limit == 0;
}

std::shared_ptr<Function::State> build(const std::vector<Input>& inputs, const std::vector<Expr>& outputs,
                                       const FunctionOptions& wishes, Where where) {
    const DefaultFloatMode mode;  // constants are folded
    const auto start = std::chrono::steady_clock::now();
    check_disabled();
    auto state = std::make_shared<Function::State>();
    state->device = &device_for(wishes, where);
    Request request = validate(inputs, outputs, wishes, where);
    state->name = request.graph.name;
    state->where = where;
    state->signature = std::move(request.signature);
    state->inputs = state->signature.inputs;
    state->defaults = std::move(request.defaults);
    state->precision = wishes.precision;
    state->profile = wishes.profile;
    state->memory_limit = wishes.memory_limit.bytes;
    state->activations = wishes.activations;
    state->strict_math = options().strict_math;
    state->autotune = wishes.autotune.value_or(options().autotune);
    state->dump_folder = make_dump_folder(state->name);
    request.graph.dump_folder = state->dump_folder;
    state->plain = std::make_shared<const Graph>(std::move(request.graph));
    state->shared = shared_variables(*state->plain);
    if (wishes.micro_batch < 0)
        throw GraphError(where,
                         fmt::format("function \"{}\": micro_batch is {}; it is a number of rows, or 0 for "
                                     "all rows at once",
                                     state->name, wishes.micro_batch));
    state->micro_batch = wishes.micro_batch;
    if (state->micro_batch > 0 || state->memory_limit > 0 || options().memory_limit > 0)
        state->before_givens = graph_before_givens(inputs, outputs, wishes, *state->plain, where);

    std::optional<Target> target = target_of(*state);
    if (target) find_routines(*state, *state->plain, *target);
    if (target && wishes.specialise.value_or(options().specialise))
        if (std::vector<FreeLength> free = free_lengths(*state->plain, has_version_of_single_rows(*state));
            !free.empty())
            state->specialised = std::make_unique<Specialised>(*state, std::move(free));
    if (!state->specialised || !state->device->runs()) {
        compile(*state, {});
    } else {
        dump_before_compiling(*state);
        dump_report(*state);
    }
    keep_limit(*state);
    state->compile_seconds = seconds_since(start);
    return state;
}

CompileError compiler_disappeared() {
    return CompileError(
        "the host compiler disappeared: it was there when the function was built; install it again, or name "
        "another one by BITALE_CXX");
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
    Numbers numbers;
    for (std::size_t s = 0; s < values.size(); ++s) numbers[binder.symbol_ids()[s]] = values[s];
    Substitution lengths;
    for (const auto& [symbol, number] : numbers) lengths.emplace(symbol, Int(number));
    for (const LengthCheck& check : state.signature.checks)
        if (substitute(check.a, lengths) != substitute(check.b, lengths)) return;  // the call will say so
    const std::optional<Target> target = target_of(state);
    if (!target) throw compiler_disappeared();
    const int runs_before = compiler_runs_of(state);
    Compiled compiled = generated(state, *target, numbers);
    std::unique_ptr<Executable> executable = prepared(state, compiled.program);
    {
        // Other threads may be calling what there was until now; who holds its list of kernels keeps it.
        const Running running;
        state.kernels_before = std::move(state.kernels);
        take(state, std::move(compiled));
        state.executable_before = std::exchange(state.executable, std::move(executable));
        state.current.store(state.executable.get(), std::memory_order_release);
    }
    const double seconds = seconds_since(start);
    state.compile_seconds += seconds;
    if (state.version_of) state.version_of->add_cost(seconds, compiler_runs_of(state) - runs_before);
    dump_report(state);
    state.waits_for_lengths.store(false, std::memory_order_release);
}

GraphError wrong_number(const Function::State& state, std::size_t given, const std::string& more) {
    const std::size_t wanted = state.inputs.size();
    return GraphError(state.where, fmt::format("function \"{}\" takes {} argument{}, the call has {}{}",
                                               state.name, wanted, wanted == 1 ? "" : "s", given, more));
}

// The arguments with the defaults of those left out; `storage` holds them when there are any.
std::span<const Array> completed(const Function::State& state, std::span<const Array> arguments,
                                 std::vector<Array>& storage) {
    if (arguments.size() > state.inputs.size()) throw wrong_number(state, arguments.size(), "");
    if (arguments.size() == state.inputs.size()) return arguments;
    storage.assign(arguments.begin(), arguments.end());
    for (std::size_t i = arguments.size(); i < state.inputs.size(); ++i) {
        if (!state.defaults[i])
            throw wrong_number(state, arguments.size(),
                               fmt::format(": input {} at {} has no default", in_quotes(state.inputs[i].name),
                                           state.inputs[i].where.text()));
        storage.push_back(*state.defaults[i]);
    }
    return storage;
}

void check_loop(const Function::State& state) {
    const bool scalar =
        !state.inputs.empty() && state.inputs[0].type.rank() == 0 && is_integer(state.inputs[0].type.dtype);
    if (!scalar)
        throw GraphError(
            state.where,
            fmt::format("loop needs a function whose first input is an integer scalar; \"{}\" has {}",
                        state.name, state.inputs.empty() ? "no inputs" : text_of(state.inputs[0].type)));
    for (std::size_t i = 1; i < state.inputs.size(); ++i)
        if (!state.defaults[i])
            throw GraphError(state.where,
                             fmt::format("loop of \"{}\": input {} at {} has no default", state.name,
                                         in_quotes(state.inputs[i].name), state.inputs[i].where.text()));
}

// What a call runs: the function, or its version for the lengths of these arguments, which lives on in
// `held`.
Function::State& for_call(Function::State& state, std::span<const Array> arguments,
                          std::optional<Specialised::Held>& held) {
    Function::State& runs = state.specialised ? held.emplace(*state.specialised, arguments).state() : state;
    measure_at_first_call(runs, arguments);
    return runs;
}

Results run(Function::State& state, std::span<const Array> arguments) {
    std::optional<Specialised::Held> version;
    Function::State& runs = for_call(state, arguments, version);
    return explaining(runs, arguments, 0, [&] {
        return whole_or_in_parts(
            runs, arguments, 0,
            [&](Executable& executable, const std::vector<SharedUse>& shared, const Idle& idle) {
                const CallLock lock(*state.device, shared);
                idle.drop_arenas();
                return Results(executable.run(arguments));
            },
            [] { return false; });
    });
}

// Versions for other lengths keep memory: they go where the call's own does not find enough.
Results run_with_room(Function::State& state, std::span<const Array> arguments) {
    try {
        return run(state, arguments);
    } catch (const OutOfMemory&) {
        if (!state.specialised->keep_only_of(arguments)) throw;
    } catch (const std::bad_alloc&) {
        if (!state.specialised->keep_only_of(arguments)) throw;
    }
    return run(state, arguments);
}

void has_executable(Function::State& state, std::chrono::steady_clock::time_point start) {
    state.current.store(state.executable.get());
    state.compile_seconds = seconds_since(start);
    dump_report(state);
    log(1, fmt::format("function {}{} on {}: {} kernels and library calls, {:.3f} s", state.name,
                       state.lengths.empty() ? "" : " for " + state.lengths, state.device->name(),
                       state.kernels->size(), state.compile_seconds));
    if (logs(2))
        for (const Kernel& k : *state.kernels)
            log(2, fmt::format("  {}: {}", k.name, fmt::join(k.fused, ", ")));
}

}  // namespace

int compiler_runs_of(const Function::State& state) {
    return (state.executable ? state.executable->compiler_runs() : 0) + state.tuning.compiler_runs;
}

Program readable_program(const Function::State& state) {
    std::optional<Target> target = target_of(state);
    if (!target) throw compiler_disappeared();
    target->readable = true;
    Numbers numbers;
    const std::vector<std::int64_t> values = state.executable->last_symbols();
    for (std::size_t s = 0; s < values.size(); ++s) numbers[state.signature.sources[s].symbol] = values[s];
    return *generated(state, *target, numbers).program;
}

Function::State& used(const std::shared_ptr<Function::State>& state) {
    if (!state)
        throw GraphError(
            "an empty Function is used, or one that was moved from; make one with function(...)");
    return *state;
}

// From the optimised graph to an executable; choices are measured for the numbers of a call, if any.
void compile_optimised(Function::State& state, const Numbers& numbers) {
    const auto start = std::chrono::steady_clock::now();
    generate_program(state, numbers);
    dump_before_compiling(state);
    state.executable = prepared(state, state.program);
    has_executable(state, start);
}

void generate_program(Function::State& state, const Numbers& numbers) {
    if (!state.optimised) return;  // is interpreted, even if a compiler has come since that was decided
    const std::optional<Target> target = target_of(state);
    if (!target) return;
    take(state, generated(state, *target, numbers));
    state.waits_for_lengths = state.tuning.waiting > 0;
}

void prepare_program(Function::State& state) {
    const auto start = std::chrono::steady_clock::now();
    state.executable = prepared(state, state.program);
    has_executable(state, start);
}

void compile(Function::State& state, const Numbers& numbers) {
    const auto start = std::chrono::steady_clock::now();
    for (std::shared_ptr<const Graph>* graph : {&state.plain, &state.before_givens})
        if (*graph && state.activations != DType::float32) {
            Graph saving = **graph;
            save_activations(saving, state.activations);
            *graph = std::make_shared<const Graph>(std::move(saving));
        }
    const bool generates = target_of(state).has_value();
    if (generates && state.micro_batch > 0) {
        auto parts = std::make_unique<MicroBatched>(state, state.micro_batch);
        state.optimised = parts->optimised();
        state.kernels = std::make_unique<const std::vector<Kernel>>(parts->kernels());
        state.parts = parts.get();
        state.executable = std::move(parts);
        dump_before_compiling(state);
        return has_executable(state, start);
    }
    if (generates) {
        Graph graph = *state.plain;
        optimize(graph);
        state.optimised = std::make_shared<const Graph>(std::move(graph));
    }
    compile_optimised(state, numbers);
    state.compile_seconds = seconds_since(start);
}

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
                             : fmt::format("output {} of a function with {} output{} is used; outputs "
                                           "count from 0, and Array(f(x))[{}] is a row of the first",
                                           i, values_.size(), values_.size() == 1 ? "" : "s", i));
    return values_[i];
}

namespace {

// What lengths disagree with is often an Array that nothing was assigned to.
[[noreturn]] void rethrow_naming_empty(const Function::State& state, std::span<const Array> arguments) {
    std::string words;
    for (std::size_t i = 0; i < arguments.size() && words.empty(); ++i)
        if (is_like_default(arguments[i]))
            words = default_text(fmt::format(
                "argument {}{}", i,
                state.inputs[i].name.empty() ? "" : " (" + in_quotes(state.inputs[i].name) + ")"));
    if (words.empty()) throw;
    rethrow_with(words);
}

[[noreturn]] void rethrow_naming_moved(const Function::State& state, std::span<const Array> arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        try {
            (void)arguments[i].dtype();
        } catch (const GraphError& e) {
            throw GraphError(state.where, fmt::format("argument {} of function {}: {}", i,
                                                      in_quotes(state.name), e.what()));
        }
    }
    throw;
}

}  // namespace

Results Function::call(std::span<const Array> arguments) {
    return calling([&] {
        const DefaultFloatMode mode;
        State& state = used(state_);
        state.device->check_runs(state.name, state.where);
        std::vector<Array> storage;
        const std::span<const Array> all = completed(state, arguments, storage);
        try {
            return state.specialised ? run_with_room(state, all) : run(state, all);
        } catch (const ShapeError&) {
            rethrow_naming_empty(state, all);
        } catch (const TypeError&) {
            rethrow_naming_empty(state, all);
        } catch (const GraphError&) {
            rethrow_naming_moved(state, all);
        }
    });
}

void Function::no_memory() { calling.fail(); }

namespace {

// `call` has the steps and what may stop them. `to`: how many were done.
Results run_loop(Function::State& state, LoopCall call, std::int64_t* to = nullptr) {
    const DefaultFloatMode mode;
    check_loop(state);
    state.device->check_runs(state.name, state.where);
    const Array zero = Array(std::int64_t{0}).as(state.inputs[0].type.dtype);
    std::vector<Array> storage;
    const std::span<const Array> all = completed(state, {&zero, 1}, storage);
    std::optional<Specialised::Held> version;
    Function::State& runs = for_call(state, all, version);
    std::int64_t done = call.told;
    Results results = explaining(runs, all, call.steps, [&] {
        return whole_or_in_parts(
            runs, all, call.steps,
            [&](Executable& executable, const std::vector<SharedUse>& shared, const Idle& idle) {
                CallLock lock(*state.device, shared);
                idle.drop_arenas();
                state.steps_done.store(call.told);
                call.arguments = all;
                call.lock = &lock;
                call.stops = &state.stops;
                call.stops_before = state.stops_answered.load();
                call.steps_done = &state.steps_done;
                call.own_steps_done = &done;
                return Results(executable.loop(call));
            },
            [&] { return done != call.told; });
    });
    done -= call.told;
    if (to) *to = done;
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
Results Function::loop(std::int64_t first, std::int64_t last, const LoopOptions& options) {
    State& state = used(state_);
    const std::shared_ptr<State> held = state_;  // what reports progress may assign to this function
    if (options.every < 0)
        throw Error(
            fmt::format("loop of \"{}\": the steps between two reports must be at least 0, but are {}",
                        state.name, options.every));
    LoopCall call = steps_between(state, first, last);
    call.token = options.stop;
    if (!options.on_progress || call.steps == 0) return loop_of(state, call);
    return looping([&] {
        const auto begin = std::chrono::steady_clock::now();
        const std::int64_t steps = call.steps;
        Joined results(steps);
        while (true) {
            LoopCall part = call;
            if (options.every > 0) part.steps = std::min(options.every, call.steps);
            std::int64_t done = 0;
            const Results made = run_loop(state, part, &done);
            results.add(made, done);
            const double seconds =
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
            const auto count = static_cast<double>(results.done()), left = static_cast<double>(steps) - count;
            if (done > 0)  // where a request ended the part at once there is nothing new
                options.on_progress({.done = results.done(),
                                     .steps = steps,
                                     .seconds = seconds,
                                     .seconds_left = count > 0 ? seconds / count * left : 0,
                                     .part = &made});
            if (done < part.steps || results.done() == steps) return results.take();
            call = call.rest(done);
        }
    });
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
const Function::State& Function::state() const { return used(state_); }

}  // namespace bitale
