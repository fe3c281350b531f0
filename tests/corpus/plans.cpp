// The stages of function(), up to the Program, and their results as text.
#include "tests/corpus/plans.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <map>

#include "codegen/nest/compose.h"
#include "codegen/nest/walk.h"
#include "codegen/pipeline.h"
#include "graph/base/options.h"
#include "graph/ir/shared.h"
#include "graph/walk/traverse.h"
#include "ops/rules/phases.h"
#include "runtime/cuda/target.h"
#include "runtime/validate.h"
#ifdef STAGES_BY_HAND  // an older library, which does not hand out what its stages decide
#include "codegen/group/boundary.h"
#include "codegen/group/layout.h"
#include "codegen/group/winners.h"
#include "codegen/plan/assemble.h"
#endif

namespace bitale::corpus {

namespace {

#ifdef STAGES_BY_HAND
struct Decisions {
    Values values;
    Grouping grouping;
};

Program generate(bitale::Graph graph, const Target& target, Tuner* tuner, Decisions* decisions) {
    for (SharedUpdate& update : graph.updates)
        if (update.value->op->kind == OpKind::leaf)
            update.value = make_node(find_op("cast"), {update.value}, {{"dtype", update.value->type.dtype}},
                                     update.where);
    choose_winners(graph, target, tuner);
    Values values = decide_storage(graph, target, tuner);
    for (Value& value : values.list)
        if (value.why_generated.empty()) value.why_generated = why_winners(value.node, target, tuner);
    reorder_boundary(values, graph, target);
    choose_layouts(values, graph);
    values.settle();
    Grouping grouping = form_groups(values, graph, target);
    Program program = assemble(graph, values, grouping, target);
    if (decisions) *decisions = {std::move(values), std::move(grouping)};
    return program;
}
#endif

// Comments have names of files, as the compiler was given them.
std::int64_t bytes_without_comments(const std::string& text) {
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
        const std::size_t comment = std::min(text.find("//", at), end);
        bytes += comment - at;
        at = end;
    }
    return static_cast<std::int64_t>(bytes);
}

// " at FILE.cpp:12" says where the corpus has a line, not what became of it.
std::string without_lines(const std::string& text) {
    std::string s;
    std::size_t from = 0;
    for (std::size_t at = text.find(".cpp:"); at != std::string::npos; at = text.find(".cpp:", from)) {
        std::size_t begin = at, end = at + 5;
        const auto letter = [&](std::size_t i) {
            return std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_';
        };
        while (begin > from && letter(begin - 1)) --begin;
        while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
        if (begin >= from + 4 && text.compare(begin - 4, 4, " at ") == 0) begin -= 4;
        s.append(text, from, begin - from);
        from = end;
    }
    return s.append(text, from);
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
}

std::string join(const std::vector<std::string>& parts, const char* between) {
    std::string s;
    for (const std::string& part : parts) s += (s.empty() ? "" : between) + part;
    return s;
}

std::string texts(const std::vector<Int>& list, const char* between) {
    std::vector<std::string> parts;
    for (const Int& x : list) parts.push_back(x.text());
    return join(parts, between);
}

std::string indented(const std::string& text, const std::string& indent) {
    std::string s;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        s += indent + text.substr(at, end - at) + "\n";
        at = end + 1;
    }
    return s;
}

std::string number(int value) { return "#" + std::to_string(value); }

std::string storage_text(const Values& values) {
    static const char* const kinds[] = {"leaf", "inlined", "staged", "stored"};
    std::string s;
    for (std::size_t v = 0; v < values.list.size(); ++v) {
        const Value& value = values.list[v];
        s += number(static_cast<int>(v)) + " " + kinds[static_cast<int>(value.storage)] + " " +
             describe(*value.node);
        if (!value.order.empty()) {
            s += ", axes";
            for (const std::size_t axis : value.order) s += " " + std::to_string(axis);
        }
        if (value.by_library) s += ", by a library";
        if (value.absorbed) s += ", in the call of another value";
        if (!value.reason.empty()) s += ": " + value.reason;
        if (!value.why_generated.empty()) s += "; " + value.why_generated;
        s += "\n";
    }
    return s;
}

std::string nests_text(const Values& values) {
    std::string s;
    for (std::size_t v = 0; v < values.list.size(); ++v)
        if (const Value& value = values.list[v]; value.nest.body)
            s += number(static_cast<int>(v)) + " " + text_of(value.nest) + "\n";
    return s;
}

std::string groups_text(const Values& values, const Grouping& grouping) {
    std::string s;
    for (std::size_t g = 0; g < grouping.groups.size(); ++g) {
        const Group& group = grouping.groups[g];
        s += "group " + std::to_string(g) + ": level " + std::to_string(group.level) + ", extent " +
             group.extent.text();
        const std::pair<bool, const char*> marks[] = {{group.by_library, ", by a library"},
                                                      {group.split, ", split"},
                                                      {group.tiled, ", tiled"},
                                                      {group.once, ", once"},
                                                      {group.commits, ", commits"}};
        for (const auto& [is, text] : marks)
            if (is) s += text;
        if (!group.checks.empty()) s += ", " + std::to_string(group.checks.size()) + " checks";
        if (!group.needs.empty()) {
            s += ", after";
            for (const int other : group.needs) s += " " + std::to_string(other);
        }
        s += "\n";
        for (const int v : group.values)
            s += "  " + number(v) + " " + describe(*values.list[static_cast<std::size_t>(v)].node) + "\n";
    }
    return s;
}

class ScheduleText {
  public:
    explicit ScheduleText(const Program& program) : program_(program) {}

    std::string text() {
        if (!program_.once.steps.empty()) s_ += "once:\n";
        for (const Step& step : program_.once.steps) add(step);
        s_ += "each call:\n";
        for (const Step& step : program_.body.steps) add(step);
        s_ += "buffers:\n";
        for (std::size_t b = 0; b < program_.buffers.size(); ++b) {
            const BufferInfo& info = program_.buffers[b];
            if (info.kind == BufferInfo::Kind::arena)
                s_ += "  " + name_of(static_cast<int>(b)) + " " + text_of(info.type) + ": " + info.reason +
                      "\n";
        }
        return s_;
    }

  private:
    std::string name_of(int buffer) const {
        static const char* const kinds[] = {"arena",  "input",  "shared", "constant",
                                            "output", "errors", "slice",  "counters"};
        const BufferInfo& info = program_.buffers[static_cast<std::size_t>(buffer)];
        return std::string(kinds[static_cast<int>(info.kind)]) + " " + std::to_string(buffer) +
               (info.name.empty() ? "" : " " + info.name);
    }

    static std::string call_text(const GemmCall& g) {
        std::string batches;
        if (g.strides)
            for (const GemmStrides::Batch& batch : g.strides->batches)
                batches += batch.count.text() + " times ";
        return batches + "[" + g.m.text() + ", " + g.k.text() + (g.transpose_a ? "]^T . [" : "] . [") +
               g.k.text() + ", " + g.n.text() + (g.transpose_b ? "]^T" : "]") + (g.bias ? " + bias" : "") +
               (g.relu ? ", relu" : "") + (g.beta != 0 ? ", added to what was there" : "");
    }

    static std::string call_text(const ConvCall& c) {
        static const char* const kinds[] = {"forward", "gradient of the image", "gradient of the filters"};
        return std::string(kinds[static_cast<int>(c.kind)]) + " of images " +
               texts({c.image.shape.begin(), c.image.shape.end()}, ", ") + " and filters " +
               texts({c.filters.shape.begin(), c.filters.shape.end()}, ", ") +
               (c.groups == 1 ? "" : " in " + std::to_string(c.groups) + " groups") +
               (c.bias ? " + bias" : "") + (c.relu ? ", relu" : "");
    }

    const KernelText& text_of_kernel(const KernelLaunch& launch) const {
        return program_.kernels[static_cast<std::size_t>(launch.kernel)];
    }

    void add(const Step& step) {
        const auto* kernel = std::get_if<KernelStep>(&step.operation);
        const auto* gemm = std::get_if<GemmStep>(&step.operation);
        const auto* conv = std::get_if<ConvStep>(&step.operation);
        const auto* routine = std::get_if<RoutineStep>(&step.operation);
        const KernelLaunch* launch = kernel_of(step);
        std::vector<std::string> what;
        if (!kernel)
            what.emplace_back(gemm      ? "product by a library"
                              : conv    ? "convolution by a library"
                              : routine ? "routine"
                                        : "copy");
        if (launch) what.push_back(text_of_kernel(*launch).name);
        s_ += "  " + std::to_string(++number_) + ". " + join(what, " + ") + "  " + step.title +
              (step.commits ? "  [commits]" : "") + "\n";
        if (gemm) s_ += "     " + call_text(gemm->call) + "\n";
        if (conv) s_ += "     " + call_text(conv->call) + "\n";
        if (routine) s_ += "     " + routine->call.name + " [" + texts(routine->call.sizes, ", ") + "]\n";
        if (!step.why.empty()) s_ += "     " + step.why + "\n";
        if (kernel && !kernel->tasks.empty()) s_ += "     tasks: " + texts(kernel->tasks, ", then ") + "\n";
        std::vector<std::string> buffers;
        for (const int b : buffers_of(step)) buffers.push_back(name_of(b));
        s_ += "     buffers: " + join(buffers, ", ") + "\n";
        if (launch) s_ += indented(text_of_kernel(*launch).notes, "     ");
        if (!gemm) return;
        for (const std::optional<KernelLaunch>* pieces : {&gemm->pieces_a, &gemm->pieces_b})
            if (*pieces) {
                const KernelText& text = text_of_kernel(**pieces);
                s_ += indented(text.name + ":\n" + text.notes, "     ");
            }
    }

    const Program& program_;
    std::string s_;
    int number_ = 0;
};

std::map<std::uint64_t, std::int64_t> lengths_of(const Signature& signature, const Graph& graph) {
    std::map<std::uint64_t, std::int64_t> values;
    for (const SizeSource& source : signature.sources) {
        const Argument& argument = graph.arguments.at(static_cast<std::size_t>(source.input));
        values[source.symbol] = source.axis >= 0 ? argument.shape.at(static_cast<std::size_t>(source.axis))
                                                 : argument.value().item<std::int64_t>();
    }
    return values;
}

void describe_kernels(Program& program, Plan& plan) {
    const bool gpu = program.prelude.empty();
    plan.helpers = gpu ? program.cuda_prelude : program.prelude;
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
        KernelText& kernel = program.kernels[k];
        std::string text = kernel.body.empty() ? kernel.cuda_body : kernel.body;
        plan.text_bytes += bytes_without_comments(text);
        const std::string hashed = kernel.name;
        kernel.name = "kernel" + std::to_string(k + 1);
        replace_all(text, hashed, kernel.name);
        plan.kernels.push_back(without_lines(text));
    }
}

// Whether the value says no more than arguments or variables do, at least one of which is about as large: it
// is cast, scaled, shifted, moved, padded or gathered, by few operations.
bool restates_a_leaf(const Values& values, int v) {
    constexpr int most_cost = 16;
    const Nest nest = fully_composed_nest(values, v);
    if (nest.combine != Combine::none || cost_of(nest) > most_cost) return false;
    const double count = typical_count(nest.parallel);
    bool leaf = false, other = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        const Value& operand = values.list[static_cast<std::size_t>(s.operand.value())];
        double elements = 1;
        for (const Int& n : operand.shape) elements *= typical(n);
        if (2 * elements < count) return;
        (operand.storage == Value::Storage::leaf ? leaf : other) = true;
    });
    return leaf && !other;
}

// Those of more than a megabyte, one a line.
std::vector<std::string> copies_of(const Program& program, const Values& values, const Grouping& grouping,
                                   const std::map<std::uint64_t, std::int64_t>& lengths) {
    constexpr std::int64_t large = 1 << 20;
    const auto is_large = [&](const Type& type) {
        return evaluate(count_of(type.shape), lengths) * bytes_of(type.dtype) > large;
    };
    std::vector<std::string> list;
    for (std::size_t v = 0; v < values.list.size(); ++v) {
        const Value& value = values.list[v];
        if (value.storage != Value::Storage::stored || value.required || grouping.group_of[v] < 0 ||
            value.by_library || !is_large(value.stored_type()) ||
            !restates_a_leaf(values, static_cast<int>(v)))
            continue;
        list.push_back(without_lines(describe(*value.node) + ": " + value.reason));
    }
    for (const BufferInfo& buffer : program.buffers)
        if (buffer.kind == BufferInfo::Kind::arena && buffer.name.ends_with(" (copy)") &&
            is_large(buffer.type))
            list.push_back(buffer.name + " (" + text_of(buffer.type) + "): " + buffer.reason);
    return list;
}

std::int64_t launches_of(const Region& region) {
    std::int64_t n = 0;
    for (const Step& step : region.steps)
        if (const auto* kernel = std::get_if<KernelStep>(&step.operation))
            n += static_cast<std::int64_t>(kernel->tasks.size());
        else
            ++n;
    return n;
}

}  // namespace

const std::vector<std::pair<std::string, Target>>& targets() {
    static const std::vector<std::pair<std::string, Target>>& list = *[] {
        Target cpu;
        cpu.kind = Target::Kind::cpu;
        cpu.architecture = "x86-64-v4";
        cpu.vector_bytes = 64;
        cpu.vector_registers = 32;
        cpu.local_bytes = std::int64_t{512} << 10;
        Target with_library = cpu;
        with_library.has_gemm = with_library.has_gemm_int8 = true;
        return new std::vector<std::pair<std::string, Target>>{
            {"cpu", with_library}, {"cpu-alone", cpu}, {"cuda:sm_90", cuda::target_of("sm_90")}};
    }();
    return list;
}

Plan plan_of(const Graph& graph, const Target& target) {
    const ScopedOptions usual{Options{}};
    const std::clock_t begin = std::clock();
    FunctionOptions options;
    options.updates = graph.updates;
    options.name = graph.name;
    options.on_unused_input = OnUnused::ignore;
    Request request = validate(graph.inputs, graph.outputs, options, Where::current());
    Plan plan;
    plan.nodes = static_cast<std::int64_t>(topological(request.graph.roots()).size());
    optimize(request.graph);
    Decisions decisions;
    Program program = generate(request.graph, target, nullptr, &decisions);
    plan.milliseconds = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;

    program.size_sources = request.signature.sources;
    plan.arena_bytes = plan_arena(program, lengths_of(request.signature, graph)).bytes;
    plan.launches = launches_of(program.body);
    plan.copies =
        copies_of(program, decisions.values, decisions.grouping, lengths_of(request.signature, graph));
    describe_kernels(program, plan);
    plan.storage = without_lines(storage_text(decisions.values));
    plan.nests = without_lines(nests_text(decisions.values));
    plan.groups = without_lines(groups_text(decisions.values, decisions.grouping));
    plan.schedule = without_lines(ScheduleText(program).text());
    return plan;
}

}  // namespace bitale::corpus
