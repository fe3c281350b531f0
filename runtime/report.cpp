// Text of report() and the list of kernels.
#include "runtime/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "codegen/group/values.h"
#include "codegen/plan/names.h"
#include "graph/base/lines.h"
#include "graph/base/overloaded.h"
#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"
#include "runtime/counts.h"
#include "runtime/exec/shares.h"
#include "runtime/micro_batched.h"
#include "runtime/named_lengths.h"
#include "runtime/recomputed.h"
#include "runtime/state.h"

namespace bitale {

namespace {

// The number, or its upper bound; 0 when it has none.
std::int64_t bound_of(const Int& x) {
    const std::int64_t high = x.range().high;
    return high >= IntRange::highest || high < 0 ? 0 : high;
}

std::string scaled(double x, const char* unit) {
    const char* prefix[] = {"", "k", "M", "G", "T"};
    int p = 0;
    while (x >= 10000 && p < 4) x /= 1000, ++p;
    return fmt::format("{:.{}f} {}{}", x, p == 0 || x >= 100 ? 0 : 1, prefix[p], unit);
}

// A formula that nobody would read is a number.
std::string amount(const Int& x, const char* unit) {
    constexpr std::size_t most = 300;
    if (x.is_constant()) return scaled(static_cast<double>(x.constant()), unit);
    const std::string text = x.text();
    return text.size() <= most ? text + " " + unit : scaled(typical(x), unit) + " for typical lengths";
}

std::string name_of(const Program& program, int buffer) {
    const BufferInfo& b = program.buffers[static_cast<std::size_t>(buffer)];
    return fmt::format("{} {}{}", bitale::name_of(b.kind), buffer,
                       b.name.empty() ? "" : " " + in_quotes(b.name));
}

void add_indented(std::string& to, const std::string& text, const char* indent) {
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        to += indent + text.substr(at, end - at) + "\n";
        at = end + 1;
    }
}

std::string text_of_tensor(const ConvTensor& t) { return text_of(Shape(t.shape.begin(), t.shape.end())); }

std::string epilogue_text(bool bias, bool relu) {
    return std::string(bias ? " + bias" : "") + (relu ? ", relu" : "");
}

std::string batches_text(const GemmCall& call) {
    if (!call.strides) return "";
    Int results = 1, added = 1;
    for (const GemmStrides::Batch& batch : call.strides->batches)
        (batch.adds() ? added : results) = (batch.adds() ? added : results) * batch.count;
    return (added.is(1) ? "" : ", added up over " + added.text() + " products") +
           (results.is(1) ? "" : ", for each of " + results.text() + " products");
}

std::string call_text(const GemmCall& g) {
    const std::string old = g.beta == 0 ? "" : fmt::format("{:g} c + ", g.beta),
                      factor = g.alpha == 1 ? "" : fmt::format("{:g} ", g.alpha);
    const std::string made = g.made_a && g.made_b ? ", a and b packed on the fly"
                             : g.made_a           ? ", a packed on the fly"
                             : g.made_b           ? ", b packed on the fly"
                                                  : "";
    return fmt::format("c[{}, {}] = {}{}a{} . b{} over {}{}{}", g.m.text(), g.n.text(), old, factor,
                       g.transpose_a ? " transposed" : "", g.transpose_b ? " transposed" : "", g.k.text(),
                       made, epilogue_text(g.bias, g.relu)) +
           batches_text(g);
}

std::string call_text(const ConvCall& c) {
    static const char* const kinds[] = {"convolution of", "gradient of the image of a convolution of",
                                        "gradient of the filters of a convolution of"};
    return fmt::format("{} {} with filters {}{}{}", kinds[static_cast<int>(c.kind)], text_of_tensor(c.image),
                       text_of_tensor(c.filters), c.groups == 1 ? "" : fmt::format(" in {} groups", c.groups),
                       epilogue_text(c.bias, c.relu));
}

std::string routine_text(const RoutineCall& call) {
    std::string sizes;
    for (const Int& n : call.sizes) sizes += (sizes.empty() ? "" : ", ") + n.text();
    return fmt::format("{} of {} [{}]", call.name, bitale::name_of(call.dtype), sizes);
}

std::string arithmetic_of(const GemmCall& call) {
    if (call.dtype == DType::float32) return name_of(call.precision);
    if (call.dtype != DType::int32) return std::string(bitale::name_of(call.dtype));
    return fmt::format("{} of {} and {}", bitale::name_of(call.dtype), bitale::name_of(call.dtype_of_a()),
                       bitale::name_of(call.dtype_of_b()));
}

// The line that says what computes a step and why; nothing where there is nothing to say.
std::string call_line(const Step& step) {
    const auto library = [&](const auto& call, const std::string& precision) {
        return fmt::format("     library call: {}, {}; {}\n", call_text(call), precision, step.why);
    };
    const auto generated = [&](const auto& /*operation*/) {
        return step.why.empty() ? "" : fmt::format("     {}\n", step.why);
    };
    return std::visit(
        Overloaded{[&](const GemmStep& s) { return library(s.call, arithmetic_of(s.call)); },
                   [&](const ConvStep& s) { return library(s.call, name_of(s.call.precision)); },
                   [&](const RoutineStep& s) {
                       return fmt::format("     {}: {}; {}\n", s.call.by_library ? "library call" : "routine",
                                          routine_text(s.call), step.why);
                   },
                   generated},
        step.operation);
}

// What the machine code takes, where the device knows.
void add_resources(std::string& to, const KernelText& kernel, const Function::State& state) {
    for (const std::string& entry : kernel.entries) {
        std::string text = state.executable ? state.executable->resources(entry) : "";
        if (const auto at = state.dumped.find(entry); text.empty() && at != state.dumped.end())
            text = at->second;
        if (!text.empty()) to += fmt::format("     {}: {}\n", entry, text);
    }
}

// What the tasks of a kernel cost, and how well that suits many cores.
void add_efficiency(std::string& to, const Program& program, const KernelStep& step) {
    if (step.work.empty()) return;
    std::map<std::uint64_t, std::int64_t> values;
    bool known = true;
    for (const SizeSource& source : program.size_sources)
        values.emplace(source.symbol, source.axis < 0 ? 0 : static_cast<std::int64_t>(typical(source.value)));
    std::vector<std::vector<TaskCost>> phases;
    double work = 0;
    for (const std::vector<TaskWork>& phase : step.work) {
        std::vector<TaskCost>& costs = phases.emplace_back();
        for (const TaskWork& w : phase) {
            known = known && w.tasks.is_constant() && w.picoseconds.is_constant();
            costs.push_back({evaluate(w.tasks, values), evaluate(w.picoseconds, values)});
        }
        work += total_of(costs);
    }
    std::string parts;
    for (const int cores : {2, 8, 16, 64})
        parts += fmt::format("{}{:.2f} at {}", parts.empty() ? "" : ", ", predicted_efficiency(phases, cores),
                             cores);
    to += fmt::format("     an estimated {:.1f} us of one core{}; predicted efficiency {} cores\n",
                      1e-6 * work, known ? "" : " for typical lengths", parts);
}

std::string count_of_things(double n, const char* thing) {
    return fmt::format("{:.0f} {}{}", n, thing, n == 1 ? "" : "s");
}

// Launches on a GPU as the model of code generation predicts them, for typical lengths.
void add_predicted(std::string& to, const KernelStep& step) {
    for (std::size_t p = 0; p < step.predicted.size(); ++p) {
        const PredictedLaunch& l = step.predicted[p];
        const auto bound = [&]() -> std::string {
            switch (l.bound) {
                case PredictedLaunch::Bound::launch: return "by its start";
                case PredictedLaunch::Bound::chain:
                    return fmt::format("by its slowest thread, {:.0f} loads one after another", l.loads);
                case PredictedLaunch::Bound::issue: return "by instructions";
                case PredictedLaunch::Bound::memory: break;
            }
            return "by memory";
        };
        to += fmt::format(
            "     launch{}: {} of {:.0f} threads, {:.0f} at work, {}; at most {:.0f} sectors a warp; "
            "predicted {:.1f} us, bound {}\n",
            step.predicted.size() > 1 ? fmt::format(" {}", p + 1) : "", count_of_things(l.blocks, "block"),
            l.threads, l.working, count_of_things(l.waves, "wave"), l.sectors, l.microseconds, bound());
    }
}

void add_step(std::string& to, const Function::State& state, const Step& step, int number) {
    const Program& program = *state.program;
    to += fmt::format("\n  {}. {}  {}{}\n", number, step_name(program, step), step.title,
                      step.commits ? "  [writes shared variables, after all checks]" : "");
    to += call_line(step);
    if (state.executable) {
        const std::lock_guard lock(state.device->turns());
        if (const std::string choice = state.executable->library_choice(step); !choice.empty())
            to += fmt::format("     {}\n", choice);
    }
    if (const auto* kernel = std::get_if<KernelStep>(&step.operation); kernel && !kernel->tasks.empty()) {
        std::string tasks;
        for (std::size_t p = 0; p < kernel->tasks.size(); ++p)
            tasks += p == 0 ? kernel->tasks[p].text()
                            : fmt::format("; when these are done, {}", kernel->tasks[p].text());
        to += fmt::format("     tasks: {}\n", tasks);
        add_efficiency(to, program, *kernel);
        add_predicted(to, *kernel);
    }
    to += fmt::format("     {} moved, {}\n", amount(step.bytes, "B"), amount(step.flops, "flop"));
    std::string buffers;
    for (const int b : buffers_of(step)) buffers += (buffers.empty() ? "" : ", ") + name_of(program, b);
    to += "     buffers: " + buffers + "\n";
    if (!step.fused.empty()) {
        to += "     fused:";
        for (std::size_t i = 0; i < step.fused.size(); ++i) to += (i ? ", " : " ") + text_of(step.fused[i]);
        to += "\n";
    }
    const KernelLaunch* launch = kernel_of(step);
    if (!launch) return;
    const KernelText& kernel = program.kernels[static_cast<std::size_t>(launch->kernel)];
    add_indented(to, kernel.notes, "     ");
    add_resources(to, kernel, state);
}

void add_buffers(std::string& to, const Program& program) {
    to += "\nMaterialised buffers:\n";
    bool any = false;
    for (std::size_t b = 0; b < program.buffers.size(); ++b) {
        const BufferInfo& info = program.buffers[b];
        if (info.kind != BufferInfo::Kind::arena) continue;
        any = true;
        std::string from;
        for (const Origin& o : info.origins) from += (from.empty() ? ", from " : ", ") + text_of(o);
        to += fmt::format("  {}: {}, {}{}{}\n", name_of(program, static_cast<int>(b)),
                          bitale::text_of(info.type),
                          amount(count_of(info.type.shape) * bytes_of(info.type.dtype), "B"),
                          info.reason.empty() ? "" : ": " + info.reason, from);
    }
    if (!any) to += "  none\n";
}

}  // namespace

std::string step_name(const Program& program, const Step& step) {
    const auto kernel_name = [&](const KernelLaunch& launch) {
        return program.kernels[static_cast<std::size_t>(launch.kernel)].name;
    };
    return std::visit(Overloaded{[&](const KernelStep& s) { return kernel_name(s.launch); },
                                 [&](const GemmStep& s) {
                                     return s.epilogue ? "gemm + " + kernel_name(*s.epilogue) : "gemm";
                                 },
                                 [](const ConvStep&) { return std::string("conv"); },
                                 [](const CopyStep&) { return std::string("copy"); },
                                 [](const RoutineStep& s) { return s.call.name; }},
                      step.operation);
}

std::vector<Kernel> kernel_list(const Program& program, const std::string& device) {
    std::vector<Kernel> list;
    for (const Region* region : {&program.once, &program.body})
        for (const Step& step : region->steps) {
            Kernel k;
            k.name = step_name(program, step);
            k.device = device;
            if (const KernelLaunch* launch = kernel_of(step)) {
                const KernelText& text = program.kernels[static_cast<std::size_t>(launch->kernel)];
                k.source = text.body.empty() ? text.cuda_body : text.body;
            }
            for (const Origin& o : step.fused) k.fused.push_back(text_of(o));
            k.bytes = bound_of(step.bytes);
            k.flops = bound_of(step.flops);
            const auto* routine = std::get_if<RoutineStep>(&step.operation);
            k.by_library = std::holds_alternative<GemmStep>(step.operation) ||
                           std::holds_alternative<ConvStep>(step.operation) ||
                           (routine && routine->call.by_library);
            list.push_back(std::move(k));
        }
    return list;
}

std::string report_of(const Function::State& state, Detail detail, const std::vector<std::int64_t>& planned) {
    std::string s = fmt::format("Function {}{}, device {}\n", printable(state.name), at_line(state.where),
                                state.device->name());
    if (!state.program && state.specialised) {
        s += "  " + state.specialised->missing() +
             "\n  ask for the report of example shapes, or call it first; .specialise = false compiles one "
             "version for all lengths\n";
        return s;
    }
    const auto with_ways = [&](std::string text) {
        if (const std::string counted = counts_text(counts_of(state), detail); !counted.empty())
            text += "\n" + counted;
        return state.recomputed ? text + state.recomputed->report(detail) : text;
    };
    if (state.parts && state.parts->is_prepared()) {
        if (!state.lengths.empty()) s += "  specialised for " + state.lengths + "\n";
        return with_ways(s + state.parts->report(detail));
    }
    if (!state.program) return s + "  evaluated node by node, without generated kernels\n";
    if (!state.lengths.empty()) s += "  specialised for " + state.lengths + "\n";
    return with_ways(s + (detail == Detail::brief ? brief_report(state, planned) : full_report(state)));
}

std::string full_report(const Function::State& state) {
    const Program& program = *state.program;
    std::string s = fmt::format(
        "  target {}; {} launches per call{}; {} distinct kernels\n  built in {:.3f} s with {} compiler "
        "runs\n",
        program.target, program.body.steps.size(),
        program.once.steps.empty()
            ? std::string()
            : fmt::format(", {} more after shared variables have changed", program.once.steps.size()),
        program.kernels.size(), state.compile_seconds,
        (state.executable ? state.executable->compiler_runs() : 0) + state.tuning.compiler_runs);
    if (state.strict_math)
        s += "  math=strict: " +
             (program.held_back.empty() ? "no rule had to be held back"
                                        : fmt::format("held back {}", fmt::join(program.held_back, ", "))) +
             "\n";
    if (state.autotune) {
        const std::string why_not = state.device->timing().why_not;
        s += "  autotune: " +
             (why_not.empty() ? text_of(state.tuning) : "nothing is measured, because " + why_not) + "\n";
    }
    if (state.executable) {
        const std::lock_guard lock(state.device->turns());
        if (const std::string how = state.executable->launches(); !how.empty())
            s += "  launches: " + how + "\n";
    }
    for (std::size_t i = 0; i < program.inputs.size(); ++i)
        s += fmt::format("  input {}: {}\n", in_quotes(state.inputs[i].name), text_of(program.inputs[i]));
    for (const SharedPtr& p : program.shared) {
        const Reading reading(p->turns);
        s += fmt::format("  shared {}: {} {}, {}\n", in_quotes(p->name), name_of(p->value.dtype()),
                         text_of(p->value.shape()), scaled(static_cast<double>(p->value.bytes()), "B"));
    }
    int number = 0;
    if (!program.once.steps.empty()) s += "\nOnce:\n";
    for (const Step& step : program.once.steps) add_step(s, state, step, ++number);
    s += "\nEach call:\n";
    for (const Step& step : program.body.steps) add_step(s, state, step, ++number);
    add_buffers(s, program);
    if (!program.checks.empty()) {
        s += "\nA call fails, before anything is written, with these errors for an index out of range, "
             "{found}:\n";
        for (const Program::CheckText& c : program.checks) s += "  " + readable(c.message) + "\n";
    }
    if (!program.length_checks.empty()) {
        s += "\nA call fails, with this error, where {found} and {there} differ:\n";
        for (const LengthCheck& c : program.length_checks)
            s += fmt::format("  found = {}, there = {}: {}\n", c.a.text(), c.b.text(), readable(c.message));
    }
    NamedLengths named = with_named_lengths(std::move(s), program);
    std::string lengths;
    for (const std::string& line : named.explained) lengths += "  length " + line + "\n";
    named.text.insert(named.text.find('\n') + 1, lengths);
    return named.text;
}

}  // namespace bitale
