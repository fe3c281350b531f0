#include "ops/nn/pooling.h"

#include <cmath>

#include "graph/ir/fault_text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/nn/pool_geometry.h"
#include "ops/nn/pool_gradients.h"
#include "ops/nn/winner_gradients.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

void require_numbers(const NodePtr& x, Where where) {
    const DType t = x->type.dtype;
    if (is_integer(t) || t == float32 || t == float64) return;
    throw TypeError(where, "max_pool takes integers, float32 or float64, not " + describe(*x) + "; write " +
                               cast_text(x, float32));
}

Type infer_max_pool(const Nodes& inputs, const Attributes& attributes, Where where) {
    require_numbers(inputs[0], where);
    return {inputs[0]->type.dtype, pooled_shape("max_pool", inputs[0], PoolGeometry::of(attributes), where)};
}

Type infer_winner(const Nodes& inputs, const Attributes& attributes, Where where) {
    require_numbers(inputs[0], where);
    return {winner_dtype(attributes.get<std::vector<std::int64_t>>("window")),
            pooled_shape("max_pool", inputs[0], PoolGeometry::of(attributes), where)};
}

std::vector<Equality> max_window_fits(const Node& node) { return window_fits("max_pool", node); }

// take(out, maximum, its cell) for every window.
template <class T, class F>
void for_each_maximum(const Node& node, const Array& x, F&& take) {
    const PoolGeometry geometry = PoolGeometry::of(node.attributes);
    const Dims shape = static_dims(node.type.shape);
    const T* from = static_cast<const T*>(x.data());
    const std::int64_t count = count_of(shape);
    std::vector<std::int64_t> best(static_cast<std::size_t>(count), -1), winner(best.size(), 0);
    geometry.for_each_cell(x.shape(), shape, [&](std::int64_t out, std::int64_t cell, std::int64_t in) {
        auto& place = best[static_cast<std::size_t>(out)];
        bool better = place < 0 || from[in] > from[place];
        if constexpr (std::is_floating_point_v<T>)
            better = better || (std::isnan(from[in]) && !std::isnan(from[place]));
        if (!better) return;
        place = in;
        winner[static_cast<std::size_t>(out)] = cell;
    });
    for (std::int64_t out = 0; out < count; ++out)
        take(out, from[best[static_cast<std::size_t>(out)]], winner[static_cast<std::size_t>(out)]);
}

Array evaluate_max_pool(const Node& node, const std::vector<Array>& inputs) {
    Array r(inputs[0].dtype(), static_dims(node.type.shape));
    dispatch(r.dtype(), [&](auto t) {
        using T = decltype(t);
        if constexpr (Number<T>) {
            T* to = static_cast<T*>(r.mutable_data());
            for_each_maximum<T>(node, inputs[0],
                                [&](std::int64_t out, T value, std::int64_t) { to[out] = value; });
        }
    });
    return r;
}

Array evaluate_winner(const Node& node, const std::vector<Array>& inputs) {
    Array r(int64, static_dims(node.type.shape));
    auto* to = static_cast<std::int64_t*>(r.mutable_data());
    dispatch(inputs[0].dtype(), [&](auto t) {
        using T = decltype(t);
        if constexpr (Number<T>)
            for_each_maximum<T>(node, inputs[0],
                                [&](std::int64_t out, T, std::int64_t winner) { to[out] = winner; });
    });
    return r.as(node.type.dtype);
}

// Both nests run over the cells of the window; cells in the padding are not visited.
Nest window_nest(const Node& node, Combine combine) {
    const PoolGeometry geometry = PoolGeometry::of(node.attributes);
    const Type& x = node.inputs[0]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.reduced = {make_loop("ky", geometry.window[0]), make_loop("kx", geometry.window[1])};
    nest.combine = combine;
    nest.dtype = node.type.dtype;
    nest.accumulator = x.dtype;
    std::vector<Int> at = variables_of(nest.parallel);
    for (std::size_t i = 0; i < 2; ++i) {
        const std::size_t axis = at.size() - 2 + i;
        at[axis] = at[axis] * geometry.stride[i] - geometry.pad[i] + nest.reduced[i].variable;
        if (geometry.pad[i] > 0) nest.guards.push_back({at[axis], 0, x.shape[axis]});
    }
    nest.body = scalar_read(x.dtype, 0, std::move(at));
    return nest;
}

Nodes gradient_max_pool(const NodePtr& node, const NodePtr& g) {
    const NodePtr& x = node->inputs[0];
    const NodePtr winner = make_node(pool_winner_op(), {x}, node->attributes, node->where);
    const Shape& shape = x->type.shape;
    return {make_unpool(g, winner, PoolGeometry::of(node->attributes), shape[shape.size() - 2], shape.back(),
                        node->where)};
}

}  // namespace

DType winner_dtype(const std::vector<std::int64_t>& window) {
    const std::int64_t cells = window.at(0) * window.at(1);
    return cells < 256 ? uint8 : cells < 65536 ? uint16 : int32;
}

const Op* max_pool_op() {
    static const Op* op = register_op({
        .name = "max_pool",
        .kind = OpKind::reduce,
        .arity = 1,
        .infer = infer_max_pool,
        .equalities = max_window_fits,
        .gradient = gradient_max_pool,
        .evaluate = evaluate_max_pool,
        .nest = [](const Node& node) { return window_nest(node, Combine::max); },
    });
    return op;
}

const Op* pool_winner_op() {
    static const Op* op = register_op({
        .name = "pool_winner",
        .kind = OpKind::reduce,
        .arity = 1,
        .result = "places of the maxima of max-pooling, for its gradient",
        .infer = infer_winner,
        .equalities = max_window_fits,
        .gradient = [](const NodePtr&, const NodePtr&) { return Nodes{nullptr}; },
        .evaluate = evaluate_winner,
        .nest = [](const Node& node) { return window_nest(node, Combine::argmax); },
    });
    return op;
}

void register_pooling_ops() {
    max_pool_op();
    pool_winner_op();
    unpool_op();
    pool_pick_op();
    conv_grad_w_winners_op();
}

Expr max_pool(const Expr& x, Size2 window, PoolOptions options, Where where) try {
    require_present("max_pool", {&x}, where);
    const PoolGeometry geometry =
        checked_geometry("max_pool", window, options.stride.value_or(window), options.pad, where);
    return apply(max_pool_op(), {x}, geometry.attributes(), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
