#include "ops/nn/root.h"

#include <cmath>
#include <vector>

#include "graph/rewrite/pattern.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"

namespace bitale {

namespace {

double exponent_of(const Node& node) { return node.attributes.get<double>("exponent"); }

Nodes gradient_root(const NodePtr& node, const NodePtr& g) {
    const Where where = node->where;
    const Term x(node->inputs[0], where), y(node, where);
    const double exponent = exponent_of(*node);
    const Term slope = exponent == 0.5 ? Term(g, where) * 0.5 / y : Term(g, where) * exponent * (y / x);
    return {zero_where(y, 0, slope).node()};
}

Array evaluate_root(const Node& node, const std::vector<Array>& inputs) {
    std::vector<double> r = inputs[0].to_vector<double>();
    for (double& each : r)
        each = exponent_of(node) == 0.5 ? std::sqrt(each) : std::pow(each, exponent_of(node));
    return Array(r, inputs[0].shape());
}

NodePtr decompose_root(const NodePtr& node) {
    const double exponent = exponent_of(*node);
    if (exponent == 0.5) return make_node(sqrt_op(), node->inputs, {}, node->where);
    const NodePtr power = scalar_node(node->type.dtype, exponent, node->where);
    return compose(pow_op(), {Expr(node->inputs[0]), Expr(power)}, node->where).node();
}

}  // namespace

const Op* root_op() {
    static const Op* op = register_op({
        .name = "root",
        .kind = OpKind::composite,
        .arity = 1,
        .infer =
            [](const Nodes& inputs, const Attributes&, Where where) {
                const Type& x = inputs[0]->type;
                if (x.dtype != float32 && x.dtype != float64)
                    throw TypeError(where, "root takes float32 or float64, not " + describe(*inputs[0]));
                return x;
            },
        .gradient = gradient_root,
        .evaluate = evaluate_root,
        .decompose = decompose_root,
    });
    return op;
}

NodePtr make_root(const NodePtr& x, double exponent, Where where) {
    return make_node(root_op(), {x}, {{"exponent", exponent}}, where);
}

void register_root_ops() { root_op(); }

}  // namespace bitale
