#include "ops/nn/pick.h"

#include "graph/ir/fault_text.h"
#include "ops/dsl/wording.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

constexpr const char* some_loss = "a crossentropy";

// The narrowest of int32 and int64 that holds the labels: comparisons run beside 32-bit floats.
DType comparable(DType labels) { return labels == uint32 || bits_of(labels) == 64 ? int64 : int32; }

Type infer_pick(const Nodes& inputs, const Attributes&, Where where) {
    require_labels(inputs[0], inputs[1], "pick", where);
    return {inputs[0]->type.dtype, {inputs[0]->type.shape[0]}};
}

Array evaluate_pick(const Node& node, const std::vector<Array>& inputs) {
    const Dims& shape = inputs[0].shape();
    const std::vector<std::int64_t> labels = checked_labels(inputs[1], shape[1], node.where);
    Array r(float64, {shape[0]});
    const auto from = inputs[0].view<double>();
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::size_t i = 0; i < labels.size(); ++i)
        to[i] = from[i * static_cast<std::size_t>(shape[1]) + static_cast<std::size_t>(labels[i])];
    return r;
}

Nest nest_pick(const Node& node) {
    const Type &x = node.inputs[0]->type, &labels = node.inputs[1]->type;
    Nest nest;
    nest.dtype = x.dtype;
    nest.parallel = loops_over(node.type.shape);
    const Int row = nest.parallel[0].variable;
    Int label = 0;
    if (!x.shape[1].is(1)) {
        label = Int::symbol("label", make_loop("label", x.shape[1]).variable.range());
        nest.lets = {{label, scalar_cast(int64, scalar_read(labels.dtype, 1, {row})), x.shape[1]}};
    }
    nest.body = scalar_read(x.dtype, 0, {row, label});
    return nest;
}

Nodes gradient_pick(const NodePtr& node, const NodePtr& g) {
    return {unpick(Term(g, node->where), node->inputs[1], node->inputs[0]->type.shape[1]).node(), nullptr};
}

Type infer_unpick(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type &g = inputs[0]->type, &labels = inputs[1]->type;
    if (!is_integer(labels.dtype))
        throw TypeError(where, "unpick: the labels " + describe(*inputs[1]) + " must be integers");
    if ((g.dtype != float32 && g.dtype != float64))
        throw TypeError(where, "unpick takes float32 or float64, not " + describe(*inputs[0]));
    if (g.rank() != 1 || labels.rank() != 1 || never_equal(g.shape[0], labels.shape[0]))
        throw ShapeError(where, "unpick takes two vectors of one length, not " + describe(*inputs[0]) +
                                    " and " + describe(*inputs[1]));
    return {g.dtype, {g.shape[0], attributes.get<Int>("extent")}};
}

Array evaluate_unpick(const Node& node, const std::vector<Array>& inputs) {
    Array r(float64, static_dims(node.type.shape));
    const std::int64_t classes = r.shape()[1];
    const std::vector<std::int64_t> labels = checked_labels(inputs[1], classes, node.where);
    const auto from = inputs[0].view<double>();
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::size_t i = 0; i < labels.size(); ++i)
        to[static_cast<std::int64_t>(i) * classes + labels[i]] = from[i];
    return r;
}

Nest nest_unpick(const Node& node) {
    const Type &g = node.inputs[0]->type, &labels = node.inputs[1]->type;
    Nest nest;
    nest.dtype = g.dtype;
    nest.parallel = loops_over(node.type.shape);
    const Int row = nest.parallel[0].variable, column = nest.parallel[1].variable;
    const DType t = comparable(labels.dtype);
    const Scalar here = scalar_apply(
        eq_op(), boolean, {scalar_cast(t, scalar_read(labels.dtype, 1, {row})), scalar_index(t, column)});
    nest.body = scalar_apply(where_op(), g.dtype,
                             {here, scalar_read(g.dtype, 0, {row}), scalar_constant(g.dtype, 0)});
    return nest;
}

}  // namespace

const Op* pick_op() {
    static const Op* op = register_op({
        .name = "pick",
        .kind = OpKind::view,
        .arity = 2,
        .infer = infer_pick,
        .equalities =
            [](const Node& node) { return label_equalities(node.inputs[0], node.inputs[1], some_loss); },
        .checks =
            [](const Node& node) {
                return label_checks(node.inputs[1], node.inputs[0]->type.shape[1], some_loss, node.where);
            },
        .gradient = gradient_pick,
        .evaluate = evaluate_pick,
        .nest = nest_pick,
    });
    return op;
}

const Op* unpick_op() {
    static const Op* op = register_op({
        .name = "unpick",
        .title = "one_hot",
        .kind = OpKind::view,
        .arity = 2,
        .infer = infer_unpick,
        .equalities =
            [](const Node& node) { return label_equalities(node.inputs[0], node.inputs[1], some_loss); },
        .checks =
            [](const Node& node) {
                return label_checks(node.inputs[1], node.type.shape[1], some_loss, node.where);
            },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{pick(Term(g, node->where), node->inputs[1]).node(), nullptr};
            },
        .evaluate = evaluate_unpick,
        .nest = nest_unpick,
    });
    return op;
}

Term pick(const Term& x, const NodePtr& labels) {
    return {make_node(pick_op(), {x.node(), labels}, {}, x.where), x.where};
}

Term unpick(const Term& g, const NodePtr& labels, const Int& extent) {
    return {make_node(unpick_op(), {g.node(), labels}, {{"extent", extent}}, g.where), g.where};
}

void require_labels(const NodePtr& x, const NodePtr& labels, const char* op, Where where) {
    const Type &a = x->type, &b = labels->type;
    if (a.dtype != float32 && a.dtype != float64)
        throw TypeError(where, std::string(op) + " takes float32 or float64, not " + describe(*x) +
                                   "; write " + cast_text(x, float32));
    if (!is_integer(b.dtype))
        throw TypeError(where, std::string(op) + ": a target of rank 1 holds integer labels, not " +
                                   describe(*labels) + "; write " + cast_text(labels, int32));
    if (a.rank() != 2 || b.rank() != 1 || never_equal(a.shape[0], b.shape[0]))
        throw ShapeError(where, std::string(op) + " takes [n, classes] and labels [n], not " + describe(*x) +
                                    " and " + describe(*labels));
}

std::vector<Equality> label_equalities(const NodePtr& x, const NodePtr& labels, const std::string& loss) {
    std::vector<Equality> r;
    demand_equal(r, x->type.shape[0], labels->type.shape[0],
                 loss + " of " + describe(*x) + " with the labels " + describe(*labels) +
                     ": each row has one label, but the number of rows is " + number_found() +
                     " and the number of labels is " + number_there());
    return r;
}

std::vector<Check> label_checks(const NodePtr& labels, const Int& classes, const std::string& loss,
                                Where where) {
    return {{labels, 0, classes, with_source("a label of " + loss, *labels), where}};
}

std::vector<std::int64_t> checked_labels(const Array& labels, std::int64_t classes, Where where) {
    std::vector<std::int64_t> r = labels.to_vector<std::int64_t>();
    for (std::size_t i = 0; i < r.size(); ++i)
        if (r[i] < 0 || r[i] >= classes)
            throw IndexError(where, "a label of " + std::string(some_loss) + " is out of range: element " +
                                        std::to_string(i) + " is " + std::to_string(r[i]) +
                                        ", classes are 0 to " + std::to_string(classes - 1));
    return r;
}

void register_pick_ops() {
    pick_op();
    unpick_op();
}

}  // namespace bitale
