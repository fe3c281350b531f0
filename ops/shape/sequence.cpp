#include "ops/shape/sequence.h"

#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

Type infer_sequence(const Nodes&, const Attributes& attributes, Where where) {
    const Int& length = attributes.get<Int>("length");
    reject_negative({length}, "range", where);
    return {DType::int64, {length}};
}

Array sequence(const Node& node, std::int64_t first) {
    Array r(DType::int64, static_dims(node.type.shape));
    auto* values = static_cast<std::int64_t*>(r.mutable_data());
    for (std::int64_t i = 0; i < r.size(); ++i) values[i] = first + i;
    return r;
}

}  // namespace

const Op* iota_op() {
    static const Op* op = register_op({
        .name = "iota",
        .kind = OpKind::view,
        .arity = 0,
        .infer = infer_sequence,
        .gradient = [](const NodePtr&, const NodePtr&) { return Nodes{}; },
        .evaluate = [](const Node& node, const std::vector<Array>&) { return sequence(node, 0); },
        .nest =
            [](const Node& node) {
                Nest nest;
                nest.parallel = loops_over(node.type.shape);
                nest.dtype = DType::int64;
                nest.body = scalar_index(DType::int64, nest.parallel[0].variable);
                return nest;
            },
    });
    return op;
}

const Op* length_op() {
    static const Op* op = register_op({
        .name = "length",
        .kind = OpKind::view,
        .arity = 0,
        .infer =
            [](const Nodes&, const Attributes&, Where) {
                return Type{DType::int64, {}};
            },
        .as_length = [](const Node& node,
                        const std::vector<Int>&) { return node.attributes.get<Int>("value"); },
        .gradient = [](const NodePtr&, const NodePtr&) { return Nodes{}; },
        .evaluate =
            [](const Node& node, const std::vector<Array>&) {
                return Array(node.attributes.get<Int>("value").constant());
            },
        .nest =
            [](const Node& node) {
                Nest nest;
                nest.dtype = DType::int64;
                nest.body = scalar_index(DType::int64, node.attributes.get<Int>("value"));
                return nest;
            },
    });
    return op;
}

const Op* range_op() {
    static const Op* op = register_op({
        .name = "range",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = infer_sequence,
        .gradient = [](const NodePtr&, const NodePtr&) { return Nodes{nullptr}; },
        .evaluate =
            [](const Node& node, const std::vector<Array>& inputs) {
                return sequence(node, inputs[0].item<std::int64_t>());
            },
        .decompose =
            [](const NodePtr& node) {
                const Where where = node->where;
                const Expr start = cast(wrap(node->inputs[0]), DType::int64, where);
                const Expr steps = wrap(make_iota(node->type.shape[0], where));
                return (Arg(steps, where) + Arg(start, where)).node();
            },
    });
    return op;
}

NodePtr make_iota(const Int& length, Where where) {
    return make_node(iota_op(), {}, {{"length", length}}, where);
}

NodePtr make_length(const Int& value, Where where) {
    if (value.is_constant()) return make_constant(Array(value.constant()), where);
    return make_node(length_op(), {}, {{"value", value}}, where);
}

Expr range(const Expr& start, const Expr& stop, Where where) try {
    require_present("range", {&start, &stop}, where);
    const Int count = length_from(stop, "range", where) - length_from(start, "range", where);
    return apply(range_op(), {start}, {{"length", max(count, 0)}}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
