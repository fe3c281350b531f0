#include "ops/shape/along.h"

#include <cstddef>
#include <cstdint>
#include <new>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bitale/ops.h"
#include "graph/ir/fault_text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/shape/elements.h"
#include "ops/shape/gather.h"
#include "ops/shape/lengths.h"
#include "ops/shape/sort.h"

namespace bitale {

namespace {

const Op* put_along_axis_op();

std::string not_alike(const Node& x, const Node& positions, const std::string& lengths) {
    return "take_along_axis of " + describe(x) + " at " + describe(positions) +
           ": all lengths but that of the axis have to be equal, but are " + lengths;
}

Type infer_along(const Nodes& inputs, const Attributes&, Where where) {
    const Type &x = inputs[0]->type, &positions = inputs[1]->type;
    require_integers(inputs[1], "take_along_axis", where);
    if (x.rank() == 0 || x.rank() != positions.rank())
        throw ShapeError(where, "take_along_axis of " + describe(*inputs[0]) + " at " + describe(*inputs[1]) +
                                    ": it takes positions of the same rank, at least 1");
    for (std::size_t d = 0; d + 1 < x.shape.size(); ++d)
        if (never_equal(x.shape[d], positions.shape[d]))
            throw ShapeError(where, not_alike(*inputs[0], *inputs[1],
                                              x.shape[d].text() + " and " + positions.shape[d].text()));
    if (x.shape.back().is(0) && count_of(positions.shape).range().low > 0)
        throw IndexError(where,
                         "take_along_axis: " + describe(*inputs[0]) + " has no elements to choose from");
    return {x.dtype, positions.shape};
}

std::vector<Equality> along_fits(const Node& node) {
    const Node &x = *node.inputs[0], &positions = *node.inputs[1];
    std::vector<Equality> r;
    for (std::size_t d = 0; d + 1 < x.type.shape.size(); ++d)
        demand_equal(r, x.type.shape[d], positions.type.shape[d],
                     not_alike(x, positions, number_found() + " and " + number_there()));
    demand_at_most(r, min(count_of(positions.type.shape), 1), x.type.shape.back(),
                   "take_along_axis of " + describe(x) +
                       " needs at least 1 element to choose from, but there are " + number_there());
    return r;
}

NodePtr decompose_along(const NodePtr& node) {
    return make_node(take_along_op(), node->inputs, {{"permutation", false}}, node->where);
}

Nodes gradient_along(const NodePtr& node, const NodePtr& g) {
    return {make_node(put_along_axis_op(), {g, node->inputs[1]},
                      {{"extent", node->inputs[0]->type.shape.back()}}, node->where),
            nullptr};
}

Array evaluate_along(const Node& node, const std::vector<Array>& inputs) {
    const std::vector<std::int64_t> positions = inputs[1].to_vector<std::int64_t>();
    const std::int64_t n = inputs[0].shape().back();
    std::size_t next = 0;
    return copied(inputs[0], static_dims(node.type.shape), [&](const Dims& at) {
        const std::int64_t position = positions[next++];
        if (position < 0 || position >= n)
            throw IndexError(node.where, "take_along_axis: position " + std::to_string(position) +
                                             " is out of range for " + std::to_string(n) + " elements");
        Dims from = at;
        from.back() = position;
        return linear_of(from, inputs[0].shape());
    });
}

// Of an axis that is not the last, what the user gave.
const NodePtr& before_transpose(const NodePtr& node) {
    return node->op->name == "permute" ? node->inputs[0] : node;
}

Check in_range(const Node& node, const Int& length, const std::string& from) {
    const NodePtr& positions = before_transpose(node.inputs[1]);
    return {positions, 0, length, with_source("a position of take_along_axis in " + from, *positions),
            node.where};
}

Array evaluate_put(const Node& node, const std::vector<Array>& inputs) {
    const std::vector<std::int64_t> positions = inputs[1].to_vector<std::int64_t>();
    Array r(inputs[0].dtype(), static_dims(node.type.shape));
    const std::int64_t n = r.shape().back(), count = inputs[0].shape().back();
    auto* const to = static_cast<double*>(r.mutable_data());
    const auto* const from = static_cast<const double*>(inputs[0].data());
    for (std::size_t i = 0; i < positions.size(); ++i)
        if (positions[i] >= 0 && positions[i] < n)
            to[static_cast<std::int64_t>(i) / count * n + positions[i]] += from[i];
    return r;
}

// The gradient, which a function may have without the elements themselves: it looks at the positions too.
const Op* put_along_axis_op() {
    static const Op* op = register_op({
        .name = "put_along_axis",
        .kind = OpKind::composite,
        .arity = 2,
        .result = "a gradient of take_along_axis",
        .infer =
            [](const Nodes& inputs, const Attributes& attributes, Where) {
                Type type = inputs[0]->type;
                type.shape.back() = attributes.get<Int>("extent");
                return type;
            },
        .checks =
            [](const Node& node) {
                return std::vector<Check>{in_range(node, node.type.shape.back(), text_of(node.type))};
            },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{make_node(take_along_axis_op(), {g, node->inputs[1]}, {}, node->where), nullptr};
            },
        .evaluate = evaluate_put,
        .decompose =
            [](const NodePtr& node) {
                return make_node(put_along_op(), node->inputs, node->attributes, node->where);
            },
    });
    return op;
}

}  // namespace

const Op* take_along_axis_op() {
    static const Op* op = register_op({
        .name = "take_along_axis",
        .kind = OpKind::composite,
        .arity = 2,
        .infer = infer_along,
        .equalities = along_fits,
        .checks =
            [](const Node& node) {
                return std::vector<Check>{in_range(node, node.inputs[0]->type.shape.back(),
                                                   describe(*before_transpose(node.inputs[0])))};
            },
        .gradient = gradient_along,
        .evaluate = evaluate_along,
        .decompose = decompose_along,
    });
    return op;
}

void register_along_ops() {
    take_along_axis_op();
    put_along_axis_op();
}

Expr take_along_axis(const Expr& x, const Expr& positions, int axis, Where where) try {
    require_present("take_along_axis", {&x, &positions}, where);
    const auto own = static_cast<std::size_t>(checked_axis(axis, x, "take_along_axis", where));
    if (x.rank() != positions.rank() || own + 1 == static_cast<std::size_t>(x.rank()))
        return apply(take_along_axis_op(), {x, positions}, {}, where);
    std::vector<int> order(static_cast<std::size_t>(x.rank()));
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[own], order.back());  // there and back
    return transpose(apply(take_along_axis_op(),
                           {transpose(x, order, where), transpose(positions, order, where)}, {}, where),
                     order, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
