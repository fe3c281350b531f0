#include "ops/reduce/gradients.h"

#include <algorithm>

#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/others.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/sequence.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// A value per result element, repeated over the elements that it came from.
NodePtr repeated(const Node& node, const NodePtr& value) {
    return make_expand(make_reshape(value, kept_as_ones(node), node.where), node.inputs[0]->type.shape,
                       node.where);
}

bool is_differentiable(const Node& node) { return is_float(node.inputs[0]->type.dtype); }

NodePtr scalar_of(double value, DType dtype, Where where) {
    return make_constant(Array(value).as(dtype), where);
}

Nodes to_the_chosen(const NodePtr& node, const NodePtr& g, const Op* position) {
    if (!is_differentiable(*node)) return {nullptr};
    const NodePtr& x = node->inputs[0];
    const Where where = node->where;
    const NodePtr chosen = repeated(*node, make_node(position, {x}, {{"axes", reduced_axes(*node)}}, where));
    // Each element's number within its reduction.
    Shape reduced(x->type.shape.size(), 1);
    for (const std::int64_t axis : reduced_axes(*node))
        reduced[static_cast<std::size_t>(axis)] = x->type.shape[static_cast<std::size_t>(axis)];
    const NodePtr numbers = make_reshape(make_iota(reduced_count(*node), where), reduced, where);
    const NodePtr number = make_expand(numbers, x->type.shape, where);
    const NodePtr here = make_node(eq_op(), {chosen, number}, {}, where);
    return {make_node(where_op(), {here, repeated(*node, g), scalar_of(0, g->type.dtype, where)}, {}, where)};
}

}  // namespace

NodePtr number_of(const Int& length, DType dtype, Where where) {
    if (length.is_constant()) return make_constant(Array(length.constant()).as(dtype), where);
    return make_node(cast_op(), {make_length(length, where)}, {{"dtype", dtype}}, where);
}

Nodes gradient_sum(const NodePtr& node, const NodePtr& g) {
    if (!is_differentiable(*node)) return {nullptr};
    return {repeated(*node, g)};
}

Nodes gradient_mean(const NodePtr& node, const NodePtr& g) {
    if (!is_differentiable(*node)) return {nullptr};
    const NodePtr count = number_of(reduced_count(*node), g->type.dtype, node->where);
    return {repeated(*node, make_node(div_op(), {g, count}, {}, node->where))};
}

// For each factor the product of the others: a quotient would fail where a factor is zero.
Nodes gradient_prod(const NodePtr& node, const NodePtr& g) {
    if (!is_differentiable(*node)) return {nullptr};
    const Where where = node->where;
    const NodePtr x = cast(wrap(node->inputs[0]), g->type.dtype, where).node();
    const std::vector<std::int64_t> axes = reduced_axes(*node);
    std::vector<std::int64_t> order, back(x->type.shape.size());
    for (std::int64_t i = 0; i < x->type.rank(); ++i)
        if (std::find(axes.begin(), axes.end(), i) == axes.end()) order.push_back(i);
    order.insert(order.end(), axes.begin(), axes.end());
    for (std::size_t i = 0; i < order.size(); ++i)
        back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);

    const NodePtr ordered = make_permute(x, order, where);
    const NodePtr rows = make_reshape(ordered, {count_of(node->type.shape), reduced_count(*node)}, where);
    const NodePtr others = make_node(prod_of_others_op(), {rows}, {}, where);
    const NodePtr in_order = make_reshape(others, ordered->type.shape, where);
    return {make_node(mul_op(), {make_permute(in_order, back, where), repeated(*node, g)}, {}, where)};
}

Nodes gradient_max(const NodePtr& node, const NodePtr& g) { return to_the_chosen(node, g, argmax_op()); }
Nodes gradient_min(const NodePtr& node, const NodePtr& g) { return to_the_chosen(node, g, argmin_op()); }
Nodes no_gradient(const NodePtr&, const NodePtr&) { return {nullptr}; }

}  // namespace bitale
