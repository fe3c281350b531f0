#include "ops/oracle/stable_losses.h"

#include <utility>

#include "bitale/ops.h"
#include "graph/walk/traverse.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/nn/losses.h"
#include "ops/nn/softmax.h"

namespace bitale {

namespace {

// -log(sigmoid(z)) is softplus(-z) and -log(1 - sigmoid(z)) is softplus(z); 0 times either is 0.
NodePtr from_logit(const NodePtr& loss) {
    const Where where = loss->where;
    const Expr z = cast(wrap(loss->inputs[0]->inputs[0]), float64, where),
               t = cast(wrap(loss->inputs[1]), float64, where);
    const Expr there = bitale::where(eq(t, 0), 0, t * softplus(-z)),
               absent = bitale::where(eq(t, 1), 0, (1 - t) * softplus(z));
    return cast(there + absent, loss->type.dtype, where).node();
}

// Null for any other node.
NodePtr from_logits(const NodePtr& node) {
    if (node->op == binary_crossentropy_op())
        return node->inputs[0]->op == sigmoid_op() ? from_logit(node) : nullptr;
    const Op* op = node->op == crossentropy_labels_op()  ? softmax_crossentropy_labels_op()
                   : node->op == crossentropy_dense_op() ? softmax_crossentropy_dense_op()
                                                         : nullptr;
    if (!op || node->inputs[0]->op != softmax_op()) return nullptr;
    const NodePtr& softmax = node->inputs[0];
    if (softmax->attributes.get<std::int64_t>("axis") != 1) return nullptr;
    return make_node(op, {softmax->inputs[0], node->inputs[1]}, {}, node->where);
}

}  // namespace

Nodes with_stable_losses(const Nodes& roots) {
    NodeMap done;
    for (const NodePtr& node : topological(roots)) {
        Nodes inputs;
        bool changed = false;
        for (const NodePtr& input : node->inputs) {
            inputs.push_back(done.at(input.get()));
            changed |= inputs.back() != input;
        }
        const NodePtr same = changed ? with_inputs(node, std::move(inputs)) : node;
        const NodePtr stable = from_logits(same);
        done.emplace(node.get(), stable ? stable : same);
    }
    Nodes result;
    for (const NodePtr& root : roots) result.push_back(done.at(root.get()));
    return result;
}

}  // namespace bitale
