// Crossentropy with a distribution for each row as the target: of probabilities, and of logits.
#include <algorithm>
#include <cmath>

#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/nn/losses.h"
#include "ops/nn/softmax.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

Type infer_dense(const std::string& name, const Nodes& inputs, Where where) {
    const Type &x = inputs[0]->type, &t = inputs[1]->type;
    const std::string both = describe(*inputs[0]) + " and " + describe(*inputs[1]);
    const auto computes = [](const Type& type) { return type.dtype == float32 || type.dtype == float64; };
    if (is_integer(t.dtype) && computes(x) && t.rank() == 2 &&
        (!t.shape[1].is_constant() || t.shape[1].is(1)))
        throw TypeError(
            where,
            name + " takes integer labels as a vector [n], or a distribution in " +
                std::string(name_of(x.dtype)) + ", not " + both + "; write " +
                word_for(wrap(inputs[1]), "labels") + "[{colon, 0}] for the labels" +
                (t.shape[1].is(1) ? "" : ", " + cast_text(inputs[1], x.dtype) + " for the distribution"));
    if (x.dtype != t.dtype || !computes(x))
        throw TypeError(where, name +
                                   " takes predictions and a target distribution of one dtype, float32 or "
                                   "float64, not " +
                                   both + "; write " +
                                   cast_text(inputs[computes(x) ? 1 : 0], computes(x) ? x.dtype : float32) +
                                   (computes(x) ? ", or give integer labels of rank 1" : ""));
    if (x.rank() != 2 || t.rank() != 2 || never_equal(x.shape[0], t.shape[0]) ||
        never_equal(x.shape[1], t.shape[1]))
        throw ShapeError(where, name +
                                    " takes predictions and a target distribution of one shape, "
                                    "[n, classes], not " +
                                    both);
    return {x.dtype, {x.shape[0]}};
}

std::vector<Equality> dense_equalities(const Node& node) {
    std::vector<Equality> r;
    const Node &x = *node.inputs[0], &target = *node.inputs[1];
    for (std::size_t i = 0; i < 2; ++i)
        demand_equal(r, x.type.shape[i], target.type.shape[i],
                     title_of(node) + " of " + describe(x) + " with the distribution " + describe(target) +
                         ": the lengths must be equal, but " + unlike_lengths(x, i, target, i));
    return r;
}

// loss(row, targets, classes) for every row.
template <class F>
Array for_each_row(const std::vector<Array>& inputs, F&& loss) {
    const Dims& shape = inputs[0].shape();
    Array r(float64, {shape[0]});
    const double *row = inputs[0].view<double>().data(), *targets = inputs[1].view<double>().data();
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::int64_t i = 0; i < shape[0]; ++i)
        to[i] = loss(row + i * shape[1], targets + i * shape[1], shape[1]);
    return r;
}

Array evaluate_dense_probabilities(const Node&, const std::vector<Array>& inputs) {
    return for_each_row(inputs, [](const double* p, const double* t, std::int64_t classes) {
        double sum = 0;
        for (std::int64_t j = 0; j < classes; ++j) sum += t[j] == 0 ? 0 : t[j] * std::log(p[j]);
        return -sum;
    });
}

Array evaluate_dense_logits(const Node&, const std::vector<Array>& inputs) {
    return for_each_row(inputs, [](const double* z, const double* t, std::int64_t classes) {
        if (classes == 0) return 0.0;
        const double highest = *std::max_element(z, z + classes);
        double exponentials = 0, sum = 0;
        for (std::int64_t j = 0; j < classes; ++j) exponentials += std::exp(z[j] - highest);
        const double logarithm = std::log(exponentials);
        for (std::int64_t j = 0; j < classes; ++j) sum += t[j] == 0 ? 0 : t[j] * (z[j] - highest - logarithm);
        return -sum;
    });
}

Term column(const NodePtr& g, const Term& x) {
    return {reshape_to(Expr(g), {x.type().shape[0], 1}, x.where), x.where};
}

Nodes gradient_dense_probabilities(const NodePtr& node, const NodePtr& gradient) {
    const Term p(node->inputs[0], node->where), t(node->inputs[1], node->where), g = -column(gradient, p);
    return {(zero_where(t, 0, t / p) * g).node(), (log(p) * g).node()};
}

Nodes gradient_dense_logits(const NodePtr& node, const NodePtr& gradient) {
    const Term z(node->inputs[0], node->where), t(node->inputs[1], node->where), g = column(gradient, z);
    return {((softmax_of(z, 1) * sum_kept(t, 1) - t) * g).node(), (log_softmax_of(z, 1) * -g).node()};
}

Term negative_row_sums(const Term& products) {
    return -Term(sum(products.x, {1}, {}, products.where), products.where);
}

NodePtr decompose_dense_probabilities(const NodePtr& node) {
    const Term p(node->inputs[0], node->where), t(node->inputs[1], node->where);
    return negative_row_sums(zero_where(t, 0, t * log(p))).node();
}

NodePtr decompose_dense_logits(const NodePtr& node) {
    const Term z(node->inputs[0], node->where), t(node->inputs[1], node->where);
    return negative_row_sums(zero_where(t, 0, t * log_softmax_of(z, 1))).node();
}

}  // namespace

const Op* crossentropy_dense_op() {
    static const Op* op = register_op({
        .name = "crossentropy_dense",
        .title = "categorical_crossentropy",
        .kind = OpKind::composite,
        .arity = 2,
        .infer = [](const Nodes& inputs, const Attributes&,
                    Where where) { return infer_dense("categorical_crossentropy", inputs, where); },
        .equalities = dense_equalities,
        .gradient = gradient_dense_probabilities,
        .evaluate = evaluate_dense_probabilities,
        .decompose = decompose_dense_probabilities,
    });
    return op;
}

const Op* softmax_crossentropy_dense_op() {
    static const Op* op = register_op({
        .name = "softmax_crossentropy_dense",
        .title = "softmax_crossentropy",
        .kind = OpKind::composite,
        .arity = 2,
        .infer = [](const Nodes& inputs, const Attributes&,
                    Where where) { return infer_dense("softmax_crossentropy", inputs, where); },
        .equalities = dense_equalities,
        .gradient = gradient_dense_logits,
        .evaluate = evaluate_dense_logits,
        .decompose = decompose_dense_logits,
    });
    return op;
}

}  // namespace bitale
