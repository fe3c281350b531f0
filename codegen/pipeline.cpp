#include "codegen/pipeline.h"

#include <chrono>

#include "codegen/group/again.h"
#include "codegen/group/boundary.h"
#include "codegen/group/columns.h"
#include "codegen/group/exact_products.h"
#include "codegen/group/group.h"
#include "codegen/group/integer_ranges.h"
#include "codegen/group/layout.h"
#include "codegen/group/lookups.h"
#include "codegen/group/normal.h"
#include "codegen/group/one_hot_rows.h"
#include "codegen/group/winners.h"
#include "codegen/nest/arithmetic.h"
#include "codegen/nest/spans.h"
#include "codegen/plan/assemble.h"
#include "graph/base/log.h"
#include "graph/base/numbers.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// What the stages hand on: each fills in its own part.
struct Compilation {
    const Target& target;
    Tuner* tuner;
    Graph graph;
    Waits waits{};
    Values values{};
    Grouping grouping{};
    Program program{};
    std::vector<NodePtr> reshaped{};  // outputs as the user sees them
};

// An update by a bare leaf is a copy, and has to be a value of its own: a swap of two variables reads both
// old ones.
void copies(Compilation& c) {
    for (SharedUpdate& update : c.graph.updates)
        if (update.value->op->kind == OpKind::leaf)
            update.value =
                make_node(cast_op(), {update.value}, {{"dtype", update.value->type.dtype}}, update.where);
}

// An output that is a reshape has the bytes of what is reshaped: that is stored in its place, in its own
// form, so that a kernel which computes it by rows writes it by rows.
void reshapes(Compilation& c) {
    c.reshaped = c.graph.outputs;
    for (NodePtr& output : c.graph.outputs)
        while (output->op == reshape_op() && output->inputs[0]->op->kind != OpKind::leaf)
            output = output->inputs[0];
}

void integers(Compilation& c) { multiply_integers(c.graph, c.target); }

void columns(Compilation& c) { transpose_columns(c.graph, c.target); }

void winners(Compilation& c) { choose_winners(c.graph, c.target, c.tuner); }

void lookups(Compilation& c) {
    add_one_hot_rows(c.graph, c.target);
    sort_lookups(c.graph, c.target);
}

void again(Compilation& c) { c.waits = take_off_again(c.graph); }

void storage(Compilation& c) {
    c.values = decide_storage(c.graph, c.target, c.tuner, c.waits);
    for (Value& value : c.values.list)
        if (value.why_generated.empty()) value.why_generated = why_winners(value.node, c.target, c.tuner);
}

void boundary(Compilation& c) { reorder_boundary(c.values, c.graph, c.target); }

void layout(Compilation& c) { choose_layouts(c.values, c.graph); }
void normal_form(Compilation& c) {
    normalize_reductions(c.values);
    c.values.settle();
}
// What is known of an index when it is compiled needs no check at each call.
void checks(Compilation& c) {
    if (c.graph.checks.empty()) return;
    const IntegerRanges ranges(c.values);
    std::erase_if(c.graph.checks, [&](const Check& check) {
        const int value = c.values.number.at(check.value.get());
        const IntRange& computed = ranges.of(value);
        if (computed.low >= check.low.range().high && computed.high < check.high.range().low) return true;
        if (!c.values.list[static_cast<std::size_t>(value)].nest.body) return false;
        const Nest nest = fully_composed_nest(c.values, value);
        if (nest.combine != Combine::none || !nest.lets.empty()) return false;
        const std::optional<Int> x = integer_of(nest.body);
        if (!x) return false;
        if ((*x - check.low).range().low >= 0 && (check.high - 1 - *x).range().low >= 0) return true;
        const std::optional<Span> span = Spans(nest).of(*x);
        return span && at_least(span->low, check.low) && at_least(check.high - 1, span->high);
    });
}
void group(Compilation& c) { c.grouping = form_groups(c.values, c.graph, c.target); }
void kernels(Compilation& c) {
    c.program = assemble(c.graph, c.values, c.grouping, c.target);
    c.program.held_back = c.graph.held_back;
    for (BufferInfo& buffer : c.program.buffers) {
        if (buffer.kind != BufferInfo::Kind::output) continue;
        const NodePtr& output = c.reshaped[static_cast<std::size_t>(buffer.index)];
        buffer.type = output->type;
        if (!output->name.empty()) buffer.name = output->name;
    }
    for (std::size_t o = 0; o < c.reshaped.size(); ++o) c.program.outputs[o] = c.reshaped[o]->type;
}

struct Stage {
    const char* name;
    void (*run)(Compilation&);
};

constexpr Stage stages[] = {
    {"copies", copies},       // updates that only copy become values
    {"reshapes", reshapes},   // outputs that only have another form
    {"integers", integers},   // products of small integers, as floats
    {"columns", columns},     // operands whose neighbours lie apart, for vector lanes
    {"winners", winners},     // gradients of filters behind max-pooling
    {"lookups", lookups},     // scatters into large tables, by sorted indices
    {"again", again},         // what gradients compute again waits for the backward pass
    {"storage", storage},     // nests; what is inlined, staged, stored
    {"boundary", boundary},   // copies between the user's order of axes and that of convolutions
    {"layout", layout},       // the order of a stored value's axes in memory
    {"normal", normal_form},  // reduced axes that are one in memory
    {"checks", checks},       // of indices that are known
    {"group", group},         // which stored values share a kernel
    {"kernels", kernels},     // schedules, text, buffers, steps
};

void show(const Compilation& c) {
    static const char* const names[] = {"leaf", "inlined", "staged", "stored"};
    for (std::size_t v = 0; v < c.values.list.size(); ++v) {
        const Value& value = c.values.list[v];
        std::string line = "  #" + std::to_string(v) + " " + names[static_cast<int>(value.storage)] + " " +
                           describe(*value.node);
        if (v < c.grouping.group_of.size() && c.grouping.group_of[v] >= 0)
            line += ", group " + std::to_string(c.grouping.group_of[v]);
        if (value.nest.body) line += "\n      " + text_of(value.nest);
        log(5, line);
    }
}

}  // namespace

Program generate(const Graph& graph, const Target& target, Tuner* tuner, Decisions* decisions) {
    Compilation c{target, tuner, graph};
    for (const Stage& stage : stages) {
        const auto begin = std::chrono::steady_clock::now();
        stage.run(c);
        const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
        log(3, "codegen " + std::string(stage.name) + " of \"" + graph.name +
                   "\": " + number_text(time.count()) + " ms");
    }
    if (logs(5)) show(c);
    if (decisions) *decisions = {std::move(c.values), std::move(c.grouping)};
    return std::move(c.program);
}

}  // namespace bitale
