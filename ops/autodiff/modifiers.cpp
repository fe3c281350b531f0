// Ops that change gradients and nothing else.
#include "ops/autodiff/modifiers.h"

#include "ops/dsl/build.h"

namespace bitale {

const Op* disconnected_grad_op() {
    static const Op* op = register_op({
        .name = "disconnected_grad",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = [](const Nodes& inputs, const Attributes&, Where) { return inputs[0]->type; },
        .as_length = [](const Node&, const std::vector<Int>& inputs) { return inputs[0]; },
        .gradient = [](const NodePtr&, const NodePtr&) { return Nodes{nullptr}; },
        .evaluate = [](const Node&, const std::vector<Array>& inputs) { return inputs[0]; },
        .decompose = [](const NodePtr& node) { return node->inputs[0]; },
    });
    return op;
}

void register_autodiff_ops() { disconnected_grad_op(); }

Expr disconnected_grad(const Expr& x, Where where) try {
    return apply(disconnected_grad_op(), {x}, {}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
