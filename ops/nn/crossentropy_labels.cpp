// Crossentropy with integer labels: of probabilities, and of logits.
#include <algorithm>
#include <cmath>

#include "ops/dsl/build.h"
#include "ops/nn/losses.h"
#include "ops/nn/pick.h"
#include "ops/nn/softmax.h"

namespace bitale {

namespace {

Type infer_labels(const char* name, const Nodes& inputs, Where where) {
    require_labels(inputs[0], inputs[1], name, where);
    return {inputs[0]->type.dtype, {inputs[0]->type.shape[0]}};
}

std::vector<Equality> equalities_of_labels(const Node& node) {
    return label_equalities(node.inputs[0], node.inputs[1], title_of(node));
}

std::vector<Check> checks(const Node& node) {
    return label_checks(node.inputs[1], node.inputs[0]->type.shape[1], title_of(node), node.where);
}

// loss(row, classes, label) for every row.
template <class F>
Array for_each_row(const Node& node, const std::vector<Array>& inputs, F&& loss) {
    const Dims& shape = inputs[0].shape();
    const std::vector<std::int64_t> labels = checked_labels(inputs[1], shape[1], node.where);
    Array r(float64, {shape[0]});
    const double* row = inputs[0].view<double>().data();
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::size_t i = 0; i < labels.size(); ++i, row += shape[1]) to[i] = loss(row, shape[1], labels[i]);
    return r;
}

Array evaluate_probabilities(const Node& node, const std::vector<Array>& inputs) {
    return for_each_row(node, inputs, [](const double* row, std::int64_t, std::int64_t label) {
        return -std::log(row[label]);
    });
}

Array evaluate_logits(const Node& node, const std::vector<Array>& inputs) {
    return for_each_row(node, inputs, [](const double* row, std::int64_t classes, std::int64_t label) {
        const double highest = *std::max_element(row, row + classes);
        double sum = 0;
        for (std::int64_t j = 0; j < classes; ++j) sum += std::exp(row[j] - highest);
        return std::log(sum) - (row[label] - highest);
    });
}

Nodes gradient_probabilities(const NodePtr& node, const NodePtr& gradient) {
    const Term g(gradient, node->where), p(node->inputs[0], node->where);
    const NodePtr& labels = node->inputs[1];
    return {unpick(-g / pick(p, labels), labels, p.type().shape[1]).node(), nullptr};
}

// softmax - onehot is exact where the softmax saturates; rows are then scaled.
Nodes gradient_logits(const NodePtr& node, const NodePtr& gradient) {
    const Where where = node->where;
    const Term z(node->inputs[0], where);
    const Shape& shape = z.type().shape;
    const Array one = Array(1.0).as(z.type().dtype);
    const Term ones(expand_to(Expr(make_constant(one, where)), {shape[0]}, where), where);
    const Term row(reshape_to(Expr(gradient), {shape[0], 1}, where), where);
    return {((softmax_of(z, 1) - unpick(ones, node->inputs[1], shape[1])) * row).node(), nullptr};
}

NodePtr decompose_probabilities(const NodePtr& node) {
    return (-log(pick(Term(node->inputs[0], node->where), node->inputs[1]))).node();
}

NodePtr decompose_logits(const NodePtr& node) {
    const Where where = node->where;
    const Term z(node->inputs[0], where);
    const Term highest = highest_kept(z, {1}), sum = sum_kept(exp(z - highest), 1);
    const auto flat = [&](const Term& x) { return Term(reshape_to(x.x, {z.type().shape[0]}, where), where); };
    return (log(flat(sum)) - (pick(z, node->inputs[1]) - flat(highest))).node();
}

}  // namespace

const Op* crossentropy_labels_op() {
    static const Op* op = register_op({
        .name = "crossentropy_labels",
        .title = "categorical_crossentropy",
        .kind = OpKind::composite,
        .arity = 2,
        .infer = [](const Nodes& inputs, const Attributes&,
                    Where where) { return infer_labels("categorical_crossentropy", inputs, where); },
        .equalities = equalities_of_labels,
        .checks = checks,
        .gradient = gradient_probabilities,
        .evaluate = evaluate_probabilities,
        .decompose = decompose_probabilities,
    });
    return op;
}

const Op* softmax_crossentropy_labels_op() {
    static const Op* op = register_op({
        .name = "softmax_crossentropy_labels",
        .title = "softmax_crossentropy",
        .kind = OpKind::composite,
        .arity = 2,
        .infer = [](const Nodes& inputs, const Attributes&,
                    Where where) { return infer_labels("softmax_crossentropy", inputs, where); },
        .equalities = equalities_of_labels,
        .checks = checks,
        .gradient = gradient_logits,
        .evaluate = evaluate_logits,
        .decompose = decompose_logits,
    });
    return op;
}

}  // namespace bitale
