#include "ops/rules/dropout_masks.h"

#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "graph/rewrite/pattern.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

bool is(const NodePtr& node, std::string_view op) { return node->op->name == op; }

bool is_zero(const NodePtr& node) {
    const std::optional<Array> value = uniform_value(node);
    return value && value->at(0) == 0;
}

// `value` where the condition holds, else zero.
struct Masked {
    NodePtr condition, value;
};

std::optional<Masked> masked(const NodePtr& node) {
    if (!is(node, "where") || !is_float(node->type.dtype) || !is_zero(node->inputs[2])) return {};
    return Masked{node->inputs[0], node->inputs[1]};
}

// x of relu(x), or of its product with a number of at least 1.
NodePtr under_relu(const NodePtr& node) {
    if (is(node, "relu")) return node->inputs[0];
    if (!is(node, "mul")) return nullptr;
    for (const std::size_t side : {0, 1}) {
        const std::optional<Array> scale = uniform_value(node->inputs[1 - side]);
        if (scale && scale->at(0) >= 1 && is(node->inputs[side], "relu"))
            return node->inputs[side]->inputs[0];
    }
    return nullptr;
}

// x of x > 0.
NodePtr positive(const NodePtr& condition) {
    return is(condition, "gt") && is_zero(condition->inputs[1]) ? condition->inputs[0] : nullptr;
}

}  // namespace

void mask_by_dropout(Graph& graph) {
    const Nodes order = topological(graph.roots());
    std::map<std::pair<const Node*, const Node*>, NodePtr> kept;  // by keep and x
    for (const NodePtr& node : order)
        if (const std::optional<Masked> y = masked(node))
            if (const NodePtr x = under_relu(y->value); x && x->type.shape == node->type.shape)
                kept.emplace(std::pair{y->condition.get(), x.get()}, node);
    if (kept.empty()) return;
    NodeMap renewed;
    std::unordered_map<const Node*, NodePtr> passes;  // y > 0, by y
    const auto now = [&](const NodePtr& node) {
        const auto found = renewed.find(node.get());
        return found == renewed.end() ? node : found->second;
    };
    for (const NodePtr& node : order) {
        const std::optional<Masked> outer = masked(node);
        const NodePtr x = outer ? positive(outer->condition) : nullptr;
        const std::optional<Masked> inner = x ? masked(outer->value) : std::nullopt;
        const auto y = inner ? kept.find({inner->condition.get(), x.get()}) : kept.end();
        if (y != kept.end() && y->second->type.shape == node->type.shape) {
            NodePtr& pass = passes[y->second.get()];
            if (!pass) {
                const NodePtr& gt = outer->condition;
                const NodePtr from = now(y->second);
                pass = make_node(gt->op, {from, scalar_node(from->type.dtype, 0, gt->where)}, {}, gt->where);
            }
            renewed[node.get()] = with_inputs(node, {pass, now(inner->value), now(node->inputs[2])});
            continue;
        }
        bool changed = false;
        Nodes inputs;
        for (const NodePtr& input : node->inputs) {
            inputs.push_back(now(input));
            changed = changed || inputs.back() != input;
        }
        if (changed) renewed[node.get()] = with_inputs(node, std::move(inputs));
    }
    Nodes roots = graph.roots();
    for (NodePtr& root : roots) root = now(root);
    graph.set_roots(roots);
}

}  // namespace bitale
