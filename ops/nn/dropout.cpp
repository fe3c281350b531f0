#include "ops/nn/dropout.h"

#include "graph/base/numbers.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/random/distributions.h"
#include "ops/random/philox.h"

namespace bitale {

namespace {

Type infer_dropout(const Nodes& inputs, const Attributes&, Where where) {
    const Type &x = inputs[0]->type, &counter = inputs[1]->type;
    if (x.dtype != float32 && x.dtype != float64)
        throw TypeError(where, "dropout takes float32 or float64, not " + describe(*inputs[0]) + "; write " +
                                   cast_text(inputs[0], float32));
    if (counter.dtype != uint64 || counter.rank() != 0)
        throw TypeError(where, "a random stream counts in a uint64 scalar, not in " + describe(*inputs[1]));
    return x;
}

Nodes gradient(const NodePtr& node, const NodePtr& g) {
    return {make_node(dropout_op(), {g, node->inputs[1]}, node->attributes, node->where), nullptr};
}

Array evaluate_dropout(const Node& node, const std::vector<Array>& inputs) {
    const auto key = static_cast<std::uint64_t>(node.attributes.get<std::int64_t>("key"));
    const auto counter = inputs[1].item<std::uint64_t>();
    const double rate = node.attributes.get<double>("rate");
    const auto x = inputs[0].view<double>();
    Array r(float64, inputs[0].shape());
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::size_t i = 0; i < x.size(); ++i) {
        const bool keep = philox::unit(philox::word(key, counter, i)) >= static_cast<float>(rate);
        to[i] = keep ? x[i] / (1 - rate) : 0;
    }
    return r;
}

NodePtr decompose(const NodePtr& node) {
    const Where where = node->where;
    const double rate = node->attributes.get<double>("rate");
    const Term x(node->inputs[0], where);
    const NodePtr u = make_unit_uniform(node->attributes.get<std::int64_t>("key"), node->inputs[1],
                                        node->type.shape, where);
    const Expr keep = elementwise(ge_op(), {Expr(u), literal(rate, where)}, where);
    return elementwise(where_op(), {keep, (x * (1 / (1 - rate))).x, literal(0, where)}, where).node();
}

}  // namespace

const Op* dropout_op() {
    static const Op* op = register_op({
        .name = "dropout",
        .kind = OpKind::composite,
        .arity = 2,
        .draws = true,
        .infer = infer_dropout,
        .gradient = gradient,
        .evaluate = evaluate_dropout,
        .decompose = decompose,
    });
    return op;
}

void register_dropout_ops() { dropout_op(); }

Expr dropout(const Expr& x, double rate, RandomStream& stream, Where where) try {
    if (!(rate >= 0 && rate < 1))
        throw Error(where, "dropout: the rate must be at least 0 and below 1, but is " + number_text(rate) +
                               "; it is the fraction that is dropped");
    const auto key = static_cast<std::int64_t>(philox::key_of(stream.seed(), stream.next_draw()));
    return apply(dropout_op(), {x, Expr(stream.counter(), where)}, {{"key", key}, {"rate", rate}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
