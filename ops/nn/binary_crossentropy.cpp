// Binary crossentropy, elementwise. Of a sigmoid, stabilize makes it softplus of the logits.
#include <cmath>

#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/nn/losses.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

Type infer(const Nodes& inputs, const Attributes&, Where where) {
    const Type &a = inputs[0]->type, &b = inputs[1]->type;
    const std::string both = describe(*inputs[0]) + " and " + describe(*inputs[1]);
    const auto computes = [](const Type& t) { return t.dtype == float32 || t.dtype == float64; };
    if (a.dtype != b.dtype || !computes(a))
        throw TypeError(where, "binary_crossentropy takes operands of one dtype, float32 or float64, not " +
                                   both + "; write " +
                                   cast_text(inputs[computes(a) ? 1 : 0], computes(a) ? a.dtype : float32));
    bool fits = a.rank() == b.rank() || a.rank() == 0 || b.rank() == 0;
    for (std::size_t i = 0; fits && i < a.shape.size() && i < b.shape.size(); ++i)
        fits = !never_equal(a.shape[i], b.shape[i]);
    if (!fits) throw ShapeError(where, "binary_crossentropy takes operands of one shape, not " + both);
    return {a.dtype, a.rank() == 0 ? b.shape : a.shape};
}

std::vector<Equality> equalities(const Node& node) {
    const Node &x = *node.inputs[0], &target = *node.inputs[1];
    const Shape &a = x.type.shape, &b = target.type.shape;
    std::vector<Equality> r;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
        demand_equal(r, a[i], b[i],
                     "binary_crossentropy of " + describe(x) + " and " + describe(target) +
                         ": the lengths must be equal, but " + unlike_lengths(x, i, target, i));
    return r;
}

Array evaluate_binary(const Node& node, const std::vector<Array>& inputs) {
    Array r(float64, static_dims(node.type.shape));
    auto* to = static_cast<double*>(r.mutable_data());
    const auto at = [](const Array& x, std::int64_t i) { return x.at(x.rank() == 0 ? 0 : i); };
    for (std::int64_t i = 0; i < r.size(); ++i) {
        const double p = at(inputs[0], i), t = at(inputs[1], i);
        to[i] = -((t == 0 ? 0 : t * std::log(p)) + (t == 1 ? 0 : (1 - t) * std::log1p(-p)));
    }
    return r;
}

// A rank-0 operand of a larger result collects the sum.
NodePtr onto(const Term& gradient, const NodePtr& operand) {
    if (operand->type.rank() == gradient.type().rank()) return gradient.node();
    return sum(gradient.x, {}, {}, gradient.where).node();
}

Nodes gradient_binary(const NodePtr& node, const NodePtr& gradient) {
    const Where where = node->where;
    const Term p(node->inputs[0], where), t(node->inputs[1], where), g(gradient, where);
    const Term against = zero_where(t, 1, (1 - t) / (1 - p)), towards = zero_where(t, 0, t / p);
    return {onto(g * (against - towards), p.node()), onto(g * (log1p(-p) - log(p)), t.node())};
}

NodePtr decompose_binary(const NodePtr& node) {
    const Term p(node->inputs[0], node->where), t(node->inputs[1], node->where);
    return (-(zero_where(t, 0, t * log(p)) + zero_where(t, 1, (1 - t) * log1p(-p)))).node();
}

}  // namespace

const Op* binary_crossentropy_op() {
    static const Op* op = register_op({
        .name = "binary_crossentropy",
        .kind = OpKind::composite,
        .arity = 2,
        .infer = infer,
        .equalities = equalities,
        .gradient = gradient_binary,
        .evaluate = evaluate_binary,
        .decompose = decompose_binary,
    });
    return op;
}

}  // namespace bitale
