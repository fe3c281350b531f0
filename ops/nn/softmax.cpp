#include "ops/nn/softmax.h"

#include <algorithm>
#include <cmath>

#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

int axis_of(const NodePtr& node) { return static_cast<int>(node->attributes.get<std::int64_t>("axis")); }

Type infer_softmax(const char* name, const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    if (x.dtype != float32 && x.dtype != float64)
        throw TypeError(where, std::string(name) + " takes float32 or float64, not " + describe(*inputs[0]) +
                                   "; write " + cast_text(inputs[0], float32));
    const std::int64_t axis = attributes.get<std::int64_t>("axis");
    BITALE_CHECK(axis >= 0 && axis < x.rank(), "the axis of " + std::string(name));
    return x;
}

// f(first, stride, length) for every line along the axis; of no elements there are none.
template <class F>
void for_each_line(const Dims& shape, std::int64_t axis, F&& f) {
    const auto at = shape.begin() + axis;
    if (*at == 0) return;
    const std::int64_t outer = count_of(Dims(shape.begin(), at)), inner = count_of(Dims(at + 1, shape.end()));
    for (std::int64_t i = 0; i < outer; ++i)
        for (std::int64_t j = 0; j < inner; ++j) f(i * *at * inner + j, inner, *at);
}

Array evaluate_softmax(const Node& node, const Array& x, bool logarithm) {
    Array r(float64, x.shape());
    const auto from = x.view<double>();
    auto* to = static_cast<double*>(r.mutable_data());
    const auto line = [&](std::int64_t first, std::int64_t stride, std::int64_t length) {
        const auto at = [&](std::int64_t k) { return static_cast<std::size_t>(first + k * stride); };
        double highest = from[at(0)], sum = 0;
        for (std::int64_t k = 1; k < length; ++k) highest = std::max(highest, from[at(k)]);
        for (std::int64_t k = 0; k < length; ++k) sum += std::exp(from[at(k)] - highest);
        for (std::int64_t k = 0; k < length; ++k) {
            const double shifted = from[at(k)] - highest;
            to[at(k)] = logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
        }
    };
    for_each_line(x.shape(), node.attributes.get<std::int64_t>("axis"), line);
    return r;
}

Nodes gradient_softmax(const NodePtr& node, const NodePtr& gradient) {
    const Term g(gradient, node->where), y(node, node->where);
    return {((g - sum_kept(g * y, axis_of(node))) * y).node()};
}

Nodes gradient_log_softmax(const NodePtr& node, const NodePtr& gradient) {
    const Term g(gradient, node->where), x(node->inputs[0], node->where);
    const int axis = axis_of(node);
    return {(g - softmax_of(x, axis) * sum_kept(g, axis)).node()};
}

NodePtr decompose_softmax(const NodePtr& node) {
    const Term x(node->inputs[0], node->where);
    const int axis = axis_of(node);
    // One division a row: the sum is 1 or more, and NaN or infinite where the results are no numbers.
    const Term e = exp(x - highest_kept(x, {axis}));
    return (e * (1 / sum_kept(e, axis))).node();
}

NodePtr decompose_log_softmax(const NodePtr& node) {
    const Term x(node->inputs[0], node->where);
    const int axis = axis_of(node);
    const Term shifted = x - highest_kept(x, {axis});
    return (shifted - log(sum_kept(exp(shifted), axis))).node();
}

}  // namespace

const Op* softmax_op() {
    static const Op* op = register_op({
        .name = "softmax",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = [](const Nodes& i, const Attributes& a,
                    Where w) { return infer_softmax("softmax", i, a, w); },
        .gradient = gradient_softmax,
        .evaluate = [](const Node& node,
                       const std::vector<Array>& inputs) { return evaluate_softmax(node, inputs[0], false); },
        .decompose = decompose_softmax,
    });
    return op;
}

const Op* log_softmax_op() {
    static const Op* op = register_op({
        .name = "log_softmax",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = [](const Nodes& i, const Attributes& a,
                    Where w) { return infer_softmax("log_softmax", i, a, w); },
        .gradient = gradient_log_softmax,
        .evaluate = [](const Node& node,
                       const std::vector<Array>& inputs) { return evaluate_softmax(node, inputs[0], true); },
        .decompose = decompose_log_softmax,
    });
    return op;
}

void register_softmax_ops() {
    softmax_op();
    log_softmax_op();
}

Term softmax_of(const Term& x, int axis) { return {softmax(x.x, axis, x.where), x.where}; }
Term log_softmax_of(const Term& x, int axis) { return {log_softmax(x.x, axis, x.where), x.where}; }
Term sum_kept(const Term& x, int axis) { return {sum(x.x, {axis}, {.keepdims = true}, x.where), x.where}; }

Term highest_kept(const Term& x, const std::vector<std::int64_t>& axes) {
    bool may_be_empty = false;
    Axes all;
    Shape kept = x.type().shape;
    for (const std::int64_t axis : axes) {
        Int& length = kept[static_cast<std::size_t>(axis)];
        may_be_empty |= length.range().low < 1;
        length = 1;
        all.push_back(static_cast<int>(axis));
    }
    const Op* op = may_be_empty ? supremum_op() : max_op();
    return {reduce(op, x.x, all, {.keepdims = true}, x.where), x.where};
}

NodePtr softmax_over(const Op* op, const NodePtr& x, const std::vector<std::int64_t>& axes, Where where) {
    if (axes.size() == 1) return make_node(op, {x}, {{"axis", axes[0]}}, where);
    // The axes come last, one beside the other, and are joined.
    std::vector<std::int64_t> order, back(x->type.shape.size());
    Shape joined;
    for (std::int64_t i = 0; i < x->type.rank(); ++i)
        if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
            order.push_back(i);
            joined.push_back(x->type.shape[static_cast<std::size_t>(i)]);
        }
    joined.emplace_back(1);
    for (const std::int64_t axis : axes) {
        order.push_back(axis);
        joined.back() = joined.back() * x->type.shape[static_cast<std::size_t>(axis)];
    }
    for (std::size_t i = 0; i < order.size(); ++i)
        back[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
    const NodePtr ordered = make_permute(x, order, where);
    const auto last = static_cast<std::int64_t>(joined.size()) - 1;
    const NodePtr y = make_node(op, {make_reshape(ordered, joined, where)}, {{"axis", last}}, where);
    return make_permute(make_reshape(y, ordered->type.shape, where), back, where);
}

Expr softmax(const Expr& x, int axis, Where where) try {
    const std::int64_t from_front = checked_axis(axis, x, "softmax", where);
    return apply(softmax_op(), {x}, {{"axis", from_front}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr log_softmax(const Expr& x, int axis, Where where) try {
    const std::int64_t from_front = checked_axis(axis, x, "log_softmax", where);
    return apply(log_softmax_op(), {x}, {{"axis", from_front}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
