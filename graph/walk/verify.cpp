#include "graph/walk/verify.h"

#include <unordered_set>

#include "graph/ir/shared.h"
#include "graph/walk/interner.h"
#include "graph/walk/traverse.h"

namespace bitale {

namespace {

void verify_node(const Node& node) {
    BITALE_CHECK(node.op, "a node without an op");
    const Op& op = *node.op;
    for (const NodePtr& input : node.inputs) BITALE_CHECK(input, "a null operand: " + describe(node));
    BITALE_CHECK(op.arity < 0 || static_cast<std::size_t>(op.arity) == node.inputs.size(),
                 "operand count: " + describe(node));
    if (op.kind == OpKind::leaf) return;
    const Type inferred = op.infer(node.inputs, node.attributes, node.where);
    BITALE_CHECK(inferred == node.type,
                 "a node of another type than its op infers, " + text_of(inferred) + ": " + describe(node));
}

}  // namespace

void verify(const Graph& graph) {
    std::unordered_set<const Node*> inputs;
    for (const NodePtr& input : graph.inputs) {
        BITALE_CHECK(input && input->op == input_op(), "an input of the graph that is no input leaf");
        BITALE_CHECK(inputs.insert(input.get()).second, "an input twice: " + describe(*input));
    }
    for (const NodePtr& root : graph.roots()) BITALE_CHECK(root, "a null root");
    for (const NodePtr& node : topological(graph.roots())) {
        verify_node(*node);
        BITALE_CHECK(node->op != input_op() || inputs.contains(node.get()),
                     "a leaf that is no input of the graph: " + describe(*node));
    }
    for (const SharedUpdate& update : graph.updates) {
        BITALE_CHECK(update.target, "an update without a target");
        const Reading reading(update.target->turns);
        const Array& value = update.target->value;
        BITALE_CHECK(update.value->type.dtype == value.dtype() && update.value->type.rank() == value.rank(),
                     "an update of another dtype or rank than " + update.target->name + ": " +
                         describe(*update.value));
    }
    for (const Check& check : graph.checks)
        BITALE_CHECK(is_integer(check.value->type.dtype), "a range check of " + describe(*check.value));
}

void verify_primitive(const Graph& graph) {
    for (const NodePtr& node : topological(graph.roots()))
        BITALE_CHECK(node->op->kind != OpKind::composite, "a composite is left: " + describe(*node));
}

void verify_merged(const Graph& graph) {
    std::unordered_map<std::uint64_t, Nodes> seen;
    for (const NodePtr& node : topological(graph.roots())) {
        if (node->op == input_op()) continue;
        Nodes& bucket = seen[structure_hash(*node)];
        for (const NodePtr& other : bucket)
            BITALE_CHECK(!same_structure(*node, *other), "two equal nodes: " + describe(*node));
        bucket.push_back(node);
    }
}

}  // namespace bitale
