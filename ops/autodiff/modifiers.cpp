// Ops that change gradients and nothing else.
#include "ops/autodiff/modifiers.h"

#include "graph/rewrite/pattern.h"
#include "ops/autodiff/saved.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/lengths.h"

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

// Composite until decompose, so that forward and backward pass meet the same rules on both sides of it.
const Op* checkpoint_op() {
    static const Op* op = register_op({
        .name = "checkpoint",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = [](const Nodes& inputs, const Attributes&, Where) { return inputs[0]->type; },
        .as_length = [](const Node&, const std::vector<Int>& inputs) { return inputs[0]; },
        .gradient = [](const NodePtr&, const NodePtr& gradient) { return Nodes{gradient}; },
        .evaluate = [](const Node&, const std::vector<Array>& inputs) { return inputs[0]; },
        .decompose = [](const NodePtr& node) { return node->inputs[0]; },
    });
    return op;
}

const Op* again_op() {
    static const Op* op = register_op({
        .name = "again",
        .kind = OpKind::view,
        .infer = [](const Nodes& inputs, const Attributes&, Where) { return inputs[0]->type; },
        .gradient =
            [](const NodePtr& node, const NodePtr& gradient) {
                Nodes r(node->inputs.size());
                r[0] = gradient;
                return r;
            },
        .evaluate = [](const Node&, const std::vector<Array>& inputs) { return inputs[0]; },
        .nest =
            [](const Node& node) {
                std::vector<Loop> loops = loops_over(node.type.shape);
                std::vector<Int> at = variables_of(loops);
                return view_nest(node, std::move(loops), std::move(at));
            },
    });
    return op;
}

const Op* flows_op() {
    static const Op* op = register_op({
        .name = "flows",
        .kind = OpKind::composite,
        .arity = 2,
        .infer =
            [](const Nodes& inputs, const Attributes&, Where) {
                return Type{DType::boolean, inputs[0]->type.shape};
            },
        .evaluate = [](const Node&,
                       const std::vector<Array>& inputs) { return inputs[0].as(DType::boolean); },
        .decompose =
            [](const NodePtr& node) {
                const NodePtr zero = scalar_node(node->inputs[0]->type.dtype, 0, node->where);
                return make_node(neq_op(), {node->inputs[0], zero}, {}, node->where);
            },
    });
    return op;
}

void register_autodiff_ops() {
    disconnected_grad_op();
    checkpoint_op();
    again_op();
    flows_op();
    saved_op();
}

Expr disconnected_grad(const Expr& x, Where where) try {
    return apply(disconnected_grad_op(), {x}, {}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr checkpoint(const Expr& x, Where where) try {
    return apply(checkpoint_op(), {x}, {}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
