// Graphs as one line of text, before and after the phases of rewriting.
#pragma once

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "graph/rewrite/driver.h"
#include "graph/walk/traverse.h"
#include "ops/rules/phases.h"
#include "ops/rules/rules.h"

namespace bitale {

// "add(exp(x), 2)"; attributes are left out.
inline std::string text_of(const NodePtr& node) {
    if (const std::optional<Array> value = uniform_value(node)) {
        const std::string digits = text_of(Attribute(value->at(0)));
        return node->type.rank() == 0 ? digits : digits + "...";
    }
    if (node->op->kind == OpKind::leaf) return node->name.empty() ? node->op->name : node->name;
    std::string s = node->op->name + "(";
    for (std::size_t i = 0; i < node->inputs.size(); ++i) s += (i ? ", " : "") + text_of(node->inputs[i]);
    return s + ")";
}

inline Graph graph_of(const std::vector<Expr>& outputs) {
    Graph graph;
    for (const Expr& x : outputs) graph.outputs.push_back(x.node());
    for (const NodePtr& node : topological(graph.outputs))
        if (node->op == input_op()) graph.inputs.push_back(node);
    return graph;
}

// All phases, verified after each.
inline Graph optimized_graph(const std::vector<Expr>& outputs) {
    Options checked = options();
    checked.verify = true;
    const ScopedOptions scope(checked);
    Graph graph = graph_of(outputs);
    optimize(graph);
    return graph;
}
inline std::string optimized(const Expr& x) { return text_of(optimized_graph({x}).outputs[0]); }

// What a gradient is taken of.
inline std::string stabilized(const Expr& x) {
    return text_of(canonicalize_and_stabilize({x.node()}, {})[0]);
}
inline std::string canonical(const Expr& x) { return text_of(rewrite({x.node()}, canonicalize_rules())[0]); }

}  // namespace bitale
