#include "ops/nn/logsumexp.h"

#include <algorithm>
#include <cmath>

#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/nn/softmax.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/kept.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/elements.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

Type infer(const char* name, const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    if (x.dtype != float32 && x.dtype != float64)
        throw TypeError(where, std::string(name) + " takes float32 or float64, not " + describe(*inputs[0]) +
                                   "; write " + cast_text(inputs[0], float32));
    return make_node(sum_op(), inputs, attributes, where)->type;
}

// f(element of the result, element of x) for every element of x.
template <class F>
void for_each_element(const Node& node, const Array& x, F&& f) {
    const std::vector<std::int64_t> axes = reduced_axes(node);
    const Dims shape = static_dims(node.type.shape);
    const double* value = x.view<double>().data();
    Dims kept(shape.size());
    for_each_index(x.shape(), [&](const Dims& at) {
        std::size_t next = 0;
        for (std::size_t i = 0; i < at.size(); ++i)
            if (!std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(i)))
                kept[next++] = at[i];
        f(static_cast<std::size_t>(linear_of(kept, shape)), *value++);
    });
}

Array evaluate_logsumexp(const Node& node, const std::vector<Array>& inputs) {
    const Dims shape = static_dims(node.type.shape);
    std::vector<double> highest(static_cast<std::size_t>(count_of(shape)), -INFINITY), sum(highest.size());
    for_each_element(node, inputs[0],
                     [&](std::size_t to, double x) { highest[to] = std::max(highest[to], x); });
    for_each_element(node, inputs[0], [&](std::size_t to, double x) {
        sum[to] += std::exp(std::isinf(highest[to]) ? x : x - highest[to]);
    });
    for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] = std::isinf(highest[i]) ? std::log(sum[i]) : highest[i] + std::log(sum[i]);
    return Array(sum, shape);
}

Array evaluate_norm(const Node& node, const std::vector<Array>& inputs) {
    const Dims shape = static_dims(node.type.shape);
    std::vector<double> sum(static_cast<std::size_t>(count_of(shape)));
    for_each_element(node, inputs[0], [&](std::size_t to, double x) { sum[to] += x * x; });
    for (double& each : sum) each = std::sqrt(each);
    return Array(sum, shape);
}

// A value of the result repeated over what it came from.
Term repeated(const Node& node, const NodePtr& value) {
    const NodePtr kept = make_reshape(value, kept_as_ones(node), node.where);
    return {make_expand(kept, node.inputs[0]->type.shape, node.where), node.where};
}

Nodes gradient_logsumexp(const NodePtr& node, const NodePtr& g) {
    const NodePtr share = softmax_over(softmax_op(), node->inputs[0], reduced_axes(*node), node->where);
    return {(Term(share, node->where) * repeated(*node, g)).node()};
}

// x / norm; the direction of nothing is nothing.
Nodes gradient_norm(const NodePtr& node, const NodePtr& g) {
    const Term x(node->inputs[0], node->where), y(node, node->where);
    const Term each = zero_where(y, 0, Term(g, node->where) / y);
    return {(x * repeated(*node, each.node())).node()};
}

// With m the maximum, log(sum(exp(x - m))) + m. An infinite maximum must not be subtracted from itself, and
// what the user has shifted need not be shifted again.
NodePtr decompose_logsumexp(const NodePtr& node) {
    const Where where = node->where;
    const Term x(node->inputs[0], where);
    const std::vector<std::int64_t> axes = reduced_axes(*node);
    const auto total = [&](const Term& of) {
        return log(Term(make_sum(exp(of).node(), axes, where), where));
    };
    if (axes.empty()) return x.node();
    const bool of_nothing = std::any_of(axes.begin(), axes.end(), [&](std::int64_t axis) {
        return x.type().shape[static_cast<std::size_t>(axis)].is(0);
    });
    if (of_nothing || is_below_maximum(x.node(), axes)) return total(x).node();
    const Term top = highest_kept(x, axes);
    const Term infinite = compose(isinf_op(), {top.x}, where);
    const Term finite = compose(where_op(), {infinite.x, literal(0, where), top.x}, where);
    const Term flat(make_reshape(finite.node(), node->type.shape, where), where);
    return (total(x - finite) + flat).node();
}

NodePtr decompose_norm(const NodePtr& node) {
    const NodePtr squares = make_node(sqr_op(), {node->inputs[0]}, {}, node->where);
    return make_node(sqrt_op(), {make_sum(squares, reduced_axes(*node), node->where)}, {}, node->where);
}

}  // namespace

const Op* logsumexp_op() {
    static const Op* op = register_op({
        .name = "logsumexp",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = [](const Nodes& i, const Attributes& a, Where w) { return infer("logsumexp", i, a, w); },
        .gradient = gradient_logsumexp,
        .evaluate = evaluate_logsumexp,
        .decompose = decompose_logsumexp,
    });
    return op;
}

const Op* norm_op() {
    static const Op* op = register_op({
        .name = "norm",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = [](const Nodes& i, const Attributes& a, Where w) { return infer("norm", i, a, w); },
        .gradient = gradient_norm,
        .evaluate = evaluate_norm,
        .decompose = decompose_norm,
    });
    return op;
}

void register_logsumexp_ops() {
    logsumexp_op();
    norm_op();
}

Expr logsumexp(const Expr& x, const Axes& axes, ReduceOptions options, Where where) try {
    return reduce(logsumexp_op(), x, axes, options, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
