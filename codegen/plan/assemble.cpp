#include "codegen/plan/assemble.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <variant>

#include "codegen/kernel/hazards.h"
#include "codegen/kernel/traffic.h"
#include "codegen/kernel/work.h"
#include "codegen/library/accumulate.h"
#include "codegen/library/conv.h"
#include "codegen/library/made.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/operations.h"
#include "codegen/nest/walk.h"
#include "codegen/plan/calls.h"
#include "codegen/plan/kernel_texts.h"
#include "codegen/plan/names.h"
#include "codegen/plan/saved.h"
#include "codegen/plan/title.h"
#include "codegen/plan/updates.h"
#include "codegen/print/dialect.h"
#include "codegen/print/prelude.h"
#include "codegen/schedule/epilogue.h"
#include "codegen/schedule/launch_model.h"
#include "codegen/schedule/made.h"
#include "codegen/schedule/segment.h"
#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/shared.h"

namespace bitale {

namespace {
// Segments are loops of their own, so a kernel of many compiles in time linear in them; one launch can
// therefore hold all parameter updates of a large network.
constexpr int most_statements = 8000;

class Assembler {
  public:
    Assembler(const Graph& graph, const Values& values, const Grouping& grouping, const Target& target)
        : graph_(graph),
          values_(values),
          grouping_(grouping),
          target_(target),
          updates_(plan_updates(graph, values, grouping)),
          saved_(saved_for_gradients(values)) {
        program_.name = graph.name;
        program_.target = target.architecture;
        for (std::size_t u = 0; u < graph.updates.size(); ++u)
            if (updates_.in_place[u]) in_place_[values.number.at(graph.updates[u].value.get())].push_back(u);
        for (std::size_t o = 0; o < graph.outputs.size(); ++o)
            outputs_of_[values.number.at(graph.outputs[o].get())].push_back(o);
    }

    Program run() {
        inputs();
        find_leaving();
        std::map<std::pair<bool, int>, std::vector<const Group*>> levels;
        for (const Group& group : grouping_.groups)
            if (group.level > 0) levels[{group.once, group.level}].push_back(&group);
        for (const bool once : {true, false})
            for (int level = 1; level <= grouping_.levels; ++level)
                if (const auto at = levels.find({once, level}); at != levels.end())
                    run_level(at->second, once, !once && level == grouping_.levels);
        copies();
        finish();
        return std::move(program_);
    }

  private:
    // ---- buffers

    int add(BufferInfo info) {
        program_.buffers.push_back(std::move(info));
        return static_cast<int>(program_.buffers.size()) - 1;
    }

    void inputs() {
        for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
            const NodePtr& node = graph_.inputs[i];
            const int index = static_cast<int>(i);
            program_.inputs.push_back(node->type);
            for (std::size_t d = 0; d < node->type.shape.size(); ++d)
                if (const std::uint64_t id = node->type.shape[d].symbol_id())
                    program_.size_sources.push_back({id, node->type.shape[d], index, static_cast<int>(d)});
            if (const Attribute* symbol = node->attributes.find("symbol"))
                program_.size_sources.push_back(
                    {std::get<Int>(*symbol).symbol_id(), std::get<Int>(*symbol), index, -1});
            if (const auto at = values_.number.find(node.get()); at != values_.number.end())
                buffers_[at->second] = {add({BufferInfo::Kind::input,
                                             index,
                                             node->name,
                                             node->type,
                                             {},
                                             {{node->where, node->name}}})};
        }
        for (const SizeSource& source : program_.size_sources) lengths_.insert(source.symbol);
    }

    int shared_index(const SharedPtr& shared) {
        const auto next = static_cast<int>(program_.shared.size());
        const auto [at, fresh] = index_of_.try_emplace(shared.get(), next);
        if (fresh) program_.shared.push_back(shared);
        return at->second;
    }

    int shared_buffer(const SharedPtr& shared, const Type& type) {
        const int index = shared_index(shared);
        const auto [at, fresh] = shared_buffers_.try_emplace(index, 0);
        if (fresh) at->second = add({BufferInfo::Kind::shared, index, shared->name, type, {}, {}});
        return at->second;
    }

    // The buffers that hold a value, the one to read first.
    const std::vector<int>& buffers_of(int v) {
        std::vector<int>& list = buffers_[v];
        if (!list.empty()) return list;
        const Value& value = values_.list[v];
        const NodePtr& node = value.node;
        if (const SharedPtr shared = shared_of(node)) return list = {shared_buffer(shared, node->type)};
        if (is_constant(node)) {
            program_.constants.push_back(constant_value(node));
            return list = {add({BufferInfo::Kind::constant,
                                static_cast<int>(program_.constants.size()) - 1,
                                "constant",
                                node->type,
                                {},
                                {}})};
        }
        BITALE_CHECK(value.storage == Value::Storage::stored,
                     "a buffer for a value that is not stored: " + describe(*node));
        if (const auto at = in_place_.find(v); at != in_place_.end())
            for (const std::size_t u : at->second)
                list.push_back(shared_buffer(graph_.updates[u].target, node->type));
        if (const auto at = outputs_of_.find(v); at != outputs_of_.end())
            for (const std::size_t o : at->second)
                list.push_back(add({BufferInfo::Kind::output, static_cast<int>(o), node->name, node->type,
                                    value.reason, node->origins}));
        if (list.empty()) {
            const std::string name = node->name.empty() ? title_of(*node) : node->name;
            list.push_back(
                add({BufferInfo::Kind::arena, 0, name, value.stored_type(), reason_of(v), node->origins,
                     saved_[v] ? BufferInfo::Role::saved : BufferInfo::Role::value}));
        }
        return list;
    }

    std::string reason_of(int v) const {
        const Value& value = values_.list[v];
        if (!leaving_[v]) return "too large for the scratch of one task";
        return value.reason.empty() ? "read by another kernel" : value.reason;
    }

    int errors_buffer() {
        if (errors_ < 0) errors_ = add({BufferInfo::Kind::errors, 0, "errors", {DType::int64, {4}}, {}, {}});
        return errors_;
    }

    void find_leaving() {
        leaving_.assign(values_.list.size(), false);
        const auto read = [&](int v, int by) {
            if (grouping_.group_of[v] >= 0 && grouping_.group_of[v] != by) leaving_[v] = true;
        };
        for (std::size_t v = 0; v < values_.list.size(); ++v) {
            const Value& value = values_.list[v];
            if (value.required) leaving_[v] = true;
            const int group = grouping_.group_of[v];
            if (group < 0) continue;
            if (value.by_library && grouping_.groups[group].values.size() == 1) leaving_[v] = true;
            for_each_value_read(values_, static_cast<int>(v), [&](int operand) { read(operand, group); });
        }
        for (const Check& check : graph_.checks) {
            const int v = values_.number.at(check.value.get());
            read(v, -2);
            const Value::Storage storage = values_.list[v].storage;
            if (storage == Value::Storage::inlined || storage == Value::Storage::staged)
                for_each_read(fully_composed_nest(values_, v),
                              [&](const ScalarNode& s) { read(s.operand.value(), -2); });
        }
    }

    // ---- steps

    void run_level(const std::vector<const Group*>& groups, bool once, bool last) {
        std::vector<const Group*> tasks;
        for (const Group* group : groups) {
            if (group->by_library)
                call_library(*group, once);
            else
                tasks.push_back(group);
        }
        // One kernel per level, cut where it would compile slowly.
        std::size_t begin = 0;
        while (begin < tasks.size()) {
            std::size_t end = begin;
            int statements = 0;
            while (end < tasks.size() &&
                   (end == begin || statements + tasks[end]->statements <= most_statements))
                statements += tasks[end++]->statements;
            kernel({tasks.begin() + static_cast<std::ptrdiff_t>(begin),
                    tasks.begin() + static_cast<std::ptrdiff_t>(end)},
                   once, last && end == tasks.size());
            begin = end;
        }
    }

    void call_library(const Group& group, bool once) {
        const int v = group.values[0];
        const LibraryCall& call = *values_.list[v].by_library;
        Step step;
        std::vector<int> operands;  // buffers
        for (const int operand : call.operands)
            operands.push_back(is_made(values_.list[operand])
                                   ? slice_buffer(operand, "packed on the fly, by slices of a product")
                                   : buffers_of(operand)[0]);
        StepTitle title;
        for (const int inside : call.absorbed) {
            title.add(title_of(*values_.list[inside].node));
            add_origins(inside, step);
        }
        title.add(describe(*values_.list[v].node));
        for (std::size_t i = 1; i < group.values.size(); ++i)
            title.add(graph_, values_.list[group.values[i]].node);
        step.title = title.text();
        add_origins(v, step);
        describe_call(call, step);
        add_part(v, step.flops, step);
        step.commits = commits_in_place(group);
        std::visit([&](const auto& c) { compute(c, group, operands, step); }, call.call);
        sort_origins(step.fused);
        (once ? program_.once : program_.body).steps.push_back(std::move(step));
        if (!leaving_[v]) return;
        const std::vector<int> all = buffers_of(v);
        for (std::size_t b = 1; b < all.size(); ++b) copy(all[0], all[b], false);
    }

    void compute(const GemmCall& call, const Group& group, const std::vector<int>& operands, Step& step) {
        const int v = group.values[0];
        GemmStep& gemm = step.operation.emplace<GemmStep>();
        gemm.call = call;
        gemm.a = operands.at(0);
        gemm.b = operands.at(1);
        if (call.bias) gemm.bias = operands.at(2);
        describe_operands(*values_.list[v].by_library, values_, target_, gemm, step);
        const bool adds = accumulate(group, gemm.call, step);
        gemm.c = adds          ? buffers_of(group.values[1])[0]
                 : leaving_[v] ? buffers_of(v)[0]
                               : slice_buffer(v, "read by its epilogue alone");
        if (adds)
            gemm.moved.old_c = gemm.moved.c;
        else if (!leaving_[v])
            gemm.moved.c = 0;
        const auto& [a, b, old_c, bias, c] = gemm.moved;
        step.bytes = a + b + old_c + bias + c;
        for (std::size_t i = 1; i < group.values.size(); ++i) {
            const int map = group.values[i];
            const Int flops = call.m * call.n * cost_of(fully_composed_nest(values_, map));
            step.flops = step.flops + flops;
            add_part(map, flops, step);
            add_origins(map, step);
        }
        if (gemm.call.made_a || gemm.call.made_b || gemm.call.symmetric) cut_into_slices(gemm.call);
        if (const std::size_t first = adds ? 2 : 1; first < group.values.size())
            gemm.epilogue = epilogue(group, first, gemm, step);
        if (gemm.call.made_a) gemm.pieces_a = pieces(v, 0, gemm.call, gemm.a, step);
        if (gemm.call.made_b) gemm.pieces_b = pieces(v, 1, gemm.call, gemm.b, step);
    }

    void compute(const ConvCall& call, const Group& group, const std::vector<int>& operands, Step& step) {
        const int v = group.values[0];
        ConvStep& conv = step.operation.emplace<ConvStep>();
        conv.call = call;
        set_strides(conv.call, conv_values(call, values_.list[v].by_library->operands, v), values_);
        const auto [image, filters, output] = conv_values(call, operands, buffers_of(v)[0]);
        conv.image = image;
        conv.filters = filters;
        conv.output = output;
        if (call.bias) conv.bias = operands.at(2);
    }

    // From memory to memory, with a buffer of the plan to work in.
    void compute(const RoutineCall& call, const Group& group, const std::vector<int>& operands, Step& step) {
        const int v = group.values[0], result = buffers_of(v)[0];
        step.operation = RoutineStep{call, operands, result, add(workspace_of(call, *values_.list[v].node))};
    }

    // Kernels that a product runs on slices.

    KernelLaunch pieces(int v, int side, GemmCall& call, int piece, Step& step) {
        KernelBuilder builder;
        builder.short_text = target_.fast_compile;
        std::string notes;
        Phase phase;
        phase.segments.push_back(schedule_pieces(v, side, call, piece, context(), builder, notes));
        builder.ir.phases.push_back(std::move(phase));
        return launch(builder, notes, step);
    }

    // Maps of the product, as a kernel whose tasks are its slices.
    KernelLaunch epilogue(const Group& group, std::size_t first, GemmStep& gemm, Step& step) {
        if (gemm.call.slice_rows == 0) cut_into_slices(gemm.call);
        KernelBuilder builder;
        builder.short_text = target_.fast_compile;
        std::string notes;
        Phase phase;
        phase.segments.push_back(
            schedule_epilogue(group, first, gemm.call, gemm.c, context(), builder, notes));
        builder.ir.phases.push_back(std::move(phase));
        builder.ir.commits = step.commits;
        return launch(builder, notes, step);
    }

    // Adds what it moves to the bytes of the step.
    KernelLaunch launch(KernelBuilder& builder, const std::string& notes, Step& step) {
        KernelLaunch launch = texts_.add(builder, notes);
        for (const std::vector<Int>* list : {&launch.reads, &launch.writes})
            for (const Int& bytes : *list) step.bytes = step.bytes + bytes;
        return launch;
    }

    // The first map of a product as part of the call: an update in place that only adds the product to the
    // old value, where nothing else needs the product.
    bool accumulate(const Group& group, GemmCall& call, Step& step) {
        const int v = group.values[0];
        if (group.values.size() == 1 || leaving_[v] || call.parameter != GemmCall::Parameter::rows ||
            is_integer(call.dtype))
            return false;
        const int map = group.values[1];
        const std::optional<ScaledSum> found = accumulation_of(fully_composed_nest(values_, map), v);
        if (!found || buffers_of(map).size() != 1 || buffers_of(map) != buffers_of(found->old)) return false;
        for (std::size_t i = 2; i < group.values.size(); ++i) {
            bool reads = false;
            for_each_read(fully_composed_nest(values_, group.values[i]),
                          [&](const ScalarNode& s) { reads = reads || s.operand.value() == v; });
            if (reads) return false;
        }
        constexpr double shared_out = 2048;  // longer sums are cut, and their parts added
        if ((call.made_a || call.made_b) && typical(call.k) >= shared_out) return false;
        call.symmetric = false;  // what it is added to need not be
        call.alpha = found->alpha;
        call.beta = found->beta;
        step.why += "; the call adds it to the variable that it updates";
        return true;
    }

    // Memory of the thread that runs a slice of a product.
    int slice_buffer(int v, const char* reason) {
        const Value& value = values_.list[v];
        return add({BufferInfo::Kind::slice, 0, title_of(*value.node), value.stored_type(), reason,
                    value.node->origins});
    }

    void copy(int from, int to, bool commits) {
        Step step;
        step.operation = CopyStep{from, to};
        step.commits = commits;
        step.title = "copy of " + in_quotes(program_.buffers[from].name);
        step.bytes =
            2 * bytes_of(program_.buffers[from].type.dtype) * count_of(program_.buffers[from].type.shape);
        program_.body.steps.push_back(std::move(step));
    }

    SegmentContext context() {
        return {values_,
                grouping_,
                graph_,
                target_,
                [this](int v) { return static_cast<bool>(leaving_[v]); },
                [this](int v) { return buffers_of(v)[0]; },
                [this](int v) { return buffers_of(v); },
                [this](Type type, const std::string& name, const std::string& reason, BufferInfo::Role role) {
                    return add({BufferInfo::Kind::arena, 0, name, std::move(type), reason, {}, role});
                },
                [this](int v, int other) { buffers_.try_emplace(v, buffers_of(other)); },
                [this] { return errors_buffer(); }};
    }

    void kernel(const std::vector<const Group*>& groups, bool once, bool last) {
        KernelBuilder builder;
        builder.short_text = target_.fast_compile;
        std::string notes;
        const SegmentContext around = context();
        Phase first, second;
        Step step;
        StepTitle title;
        for (const Group* group : groups) {
            schedule_group(*group, around, builder, first, second, notes);
            name_line(*group, first);
            name_line(*group, second);
            builder.ir.commits = builder.ir.commits || commits_in_place(*group);
            describe_work(*group, step, title);
        }
        step.title = title.text();
        if (last) commit_rest(builder, second);
        step.commits = builder.ir.commits;
        if (step.commits && !graph_.checks.empty() && target_.steps_are_queued) {
            const int place = builder.global(errors_buffer(), DType::int64, {Int(4)}, true);
            builder.ir.errors_buffer = builder.ir.places[place].buffer;
        }
        builder.ir.phases.push_back(std::move(first));
        if (!second.segments.empty()) builder.ir.phases.push_back(std::move(second));
        read_scalars(builder);
        KernelStep& kernel = step.operation.emplace<KernelStep>();
        kernel.launch = launch(builder, notes, step);
        for (const Phase& phase : builder.ir.phases) {
            kernel.tasks.push_back(tasks_of(phase.segments));
            if (target_.gpu)
                kernel.predicted.push_back(
                    predict_launch(builder.ir, phase, *target_.gpu, numbers_of(graph_)));
            if (!target_.threads_share_tasks) continue;
            std::vector<TaskWork>& work = kernel.work.emplace_back();
            for (const Segment& s : phase.segments)
                work.push_back({s.tasks, work_of(builder.ir, s, target_)});
        }
        (once ? program_.once : program_.body).steps.push_back(std::move(step));
    }

    void name_line(const Group& group, Phase& phase) const {
        if (group.values.empty()) return;
        for (Segment& segment : phase.segments)
            if (segment.where.line == 0) segment.where = values_.list[group.values[0]].node->where;
    }

    // Of a step that is recorded: it then serves every minibatch.
    void read_scalars(KernelBuilder& builder) {
        if (!target_.steps_are_queued) return;
        for (const SizeSource& source : program_.size_sources) {
            if (source.axis >= 0 || !mentions(builder.ir, source.value.symbol_id())) continue;
            builder.ir.scalars.push_back(
                {source.value, builder.global(scalar_buffer(source.input),
                                              program_.inputs[source.input].dtype, {}, false)});
        }
    }

    int scalar_buffer(int input) {
        for (std::size_t b = 0; b < program_.buffers.size(); ++b)
            if (program_.buffers[b].kind == BufferInfo::Kind::input && program_.buffers[b].index == input)
                return static_cast<int>(b);
        const NodePtr& node = graph_.inputs[input];
        return add({BufferInfo::Kind::input, input, node->name, node->type, {}, {{node->where, node->name}}});
    }

    bool commits_in_place(const Group& group) const {
        return std::any_of(group.values.begin(), group.values.end(),
                           [&](int v) { return in_place_.contains(v); });
    }

    // Title, origins, and what is computed.
    void describe_work(const Group& group, Step& step, StepTitle& title) {
        for (const int v : group.values) {
            const Value& value = values_.list[v];
            title.add(graph_, value.node);
            if (step.why.empty()) step.why = value.why_generated;
            const Int flops = operations_of(fully_composed_nest(values_, v));
            step.flops = step.flops + flops;
            add_part(v, flops, step);
            add_origins(v, step);
        }
        for (const int c : group.checks) title.add("check of " + title_of(graph_.checks[c]));
        sort_origins(step.fused);
    }

    // Of the statements that a value stands for, the one whose line it has.
    void add_part(int v, const Int& flops, Step& step) const {
        const Node& node = *values_.list[v].node;
        Origin origin{node.where, title_of(node), node.of_gradient};
        const auto of_line = std::find_if(node.origins.begin(), node.origins.end(),
                                          [&](const Origin& o) { return o.where.line == node.where.line; });
        if (!node.origins.empty()) origin = of_line == node.origins.end() ? node.origins[0] : *of_line;
        step.parts.push_back({std::move(origin), flops});
    }

    // The value's own origins and those of everything inlined into it.
    void add_origins(int v, Step& step) const {
        std::vector<Origin>& to = step.fused;
        std::vector<int> stack{v};
        std::map<int, bool> seen;
        while (!stack.empty()) {
            const int at = stack.back();
            stack.pop_back();
            if (!seen.emplace(at, true).second) continue;
            const Value& value = values_.list[at];
            if (target_.readable) step.nodes.push_back(value.node);
            to.insert(to.end(), value.node->origins.begin(), value.node->origins.end());
            if (value.node->origins.empty() && value.node->where.line)
                to.push_back({value.node->where, title_of(*value.node)});
            if (!value.nest.body) continue;
            for_each_read(value.nest, [&](const ScalarNode& s) {
                const Value::Storage storage = values_.list[s.operand.value()].storage;
                if (storage == Value::Storage::inlined || storage == Value::Storage::staged)
                    stack.push_back(s.operand.value());
            });
        }
    }

    // New values that could not be written in place, because this kernel too reads the old ones, are copied
    // in its second phase; a step of its own copies those that this phase computes, or whose old ones it
    // reads.
    void commit_rest(KernelBuilder& builder, Phase& second) {
        Touched before;
        for (const Segment& segment : second.segments) before.merge(touched_by(builder.ir, segment));
        for (std::size_t u = 0; u < graph_.updates.size(); ++u) {
            if (updates_.in_place[u]) continue;
            const SharedUpdate& update = graph_.updates[u];
            const Type& type = update.value->type;
            const int from = builder.global(buffers_of(values_.number.at(update.value.get()))[0], type.dtype,
                                            type.shape, false),
                      to = builder.global(shared_buffer(update.target, type), type.dtype, type.shape, true);
            if (before.written.contains(builder.ir.places[from].buffer) ||
                before.read.contains(builder.ir.places[to].buffer))
                continue;
            second.segments.push_back(copy_of_new_value(update, from, to, target_));
            builder.ir.commits = true;
            committed_.insert(u);
        }
    }

    // Copies to and from the outside that no kernel makes.
    void copies() {
        for (std::size_t u = 0; u < graph_.updates.size(); ++u) {
            if (updates_.in_place[u] || committed_.contains(u)) continue;
            const SharedUpdate& update = graph_.updates[u];
            copy(buffers_of(values_.number.at(update.value.get()))[0],
                 shared_buffer(update.target, update.value->type), true);
        }
        for (std::size_t o = 0; o < graph_.outputs.size(); ++o) {
            const int v = values_.number.at(graph_.outputs[o].get());
            program_.outputs.push_back(graph_.outputs[o]->type);
            const bool own = std::any_of(buffers_of(v).begin(), buffers_of(v).end(), [&](int b) {
                return program_.buffers[b].kind == BufferInfo::Kind::output &&
                       program_.buffers[b].index == static_cast<int>(o);
            });
            if (own) continue;
            const int from = buffers_of(v)[0];
            const int to = add({BufferInfo::Kind::output,
                                static_cast<int>(o),
                                graph_.outputs[o]->name,
                                graph_.outputs[o]->type,
                                {},
                                {}});
            // Outputs are the old values: before anything is committed.
            copy(from, to, false);
            Step last = std::move(program_.body.steps.back());
            program_.body.steps.pop_back();
            program_.body.steps.insert(program_.body.steps.begin(), std::move(last));
        }
    }

    void finish() {
        for (const SharedUpdate& update : graph_.updates)
            program_.updated.push_back(shared_index(update.target));
        for (const Check& check : graph_.checks) program_.checks.push_back({error_text(check)});
        for (const Value& value : values_.list) {
            if (!value.node->op->equalities) continue;
            for (const Equality& e : value.node->op->equalities(*value.node)) {
                if (e.a == e.b) continue;
                program_.length_checks.push_back({e.a, e.b, message_of(e, *value.node), e.is_index});
            }
        }
        std::string all;
        for (const KernelText& k : program_.kernels) all += k.body + k.cuda_body;
        if (target_.readable) program_.drawn = graph_.roots();
        add_prelude(program_, dialect_of(target_), device_names(all));
    }

    const Graph& graph_;
    const Values& values_;
    const Grouping& grouping_;
    const Target& target_;
    UpdatePlan updates_;
    std::vector<bool> saved_;
    Program program_;
    std::map<int, std::vector<std::size_t>> in_place_, outputs_of_;  // by value
    std::map<const SharedState*, int> index_of_;
    std::map<int, int> shared_buffers_;  // by index
    std::map<int, std::vector<int>> buffers_;
    std::vector<bool> leaving_;
    std::set<std::uint64_t> lengths_;  // symbols whose values a call knows
    KernelTexts texts_{program_, target_, lengths_};
    int errors_ = -1;
    std::set<std::size_t> committed_;  // updates that the last kernel copies
};

}  // namespace

Program assemble(const Graph& graph, const Values& values, const Grouping& grouping, const Target& target) {
    return Assembler(graph, values, grouping, target).run();
}

}  // namespace bitale
