#include "ops/nn/winner_gradients.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/nest.h"
#include "ops/linear/conv.h"
#include "ops/linear/conv_gradients.h"
#include "ops/nn/pool_gradients.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

using Pair = std::vector<std::int64_t>;
constexpr std::size_t pooled_axes = 2;

PoolGeometry pooling_of(const Attributes& attributes) {
    const auto pair = [&](const char* name) {
        const auto& list = attributes.get<Pair>(name);
        return std::array<std::int64_t, 2>{list.at(0), list.at(1)};
    };
    return {pair("pool_window"), pair("pool_stride"), pair("pool_pad")};
}

NodePtr over_all_places(const Nodes& inputs, const Attributes& attributes, Where where) {
    const NodePtr everywhere =
        make_unpool(inputs[1], inputs[2], pooling_of(attributes), attributes.get<Int>("height"),
                    attributes.get<Int>("width"), where);
    const auto& kernel = attributes.get<Pair>("kernel");
    return make_conv_grad_w(inputs[0], everywhere, ConvGeometry::of(attributes), {kernel.at(0), kernel.at(1)},
                            where);
}

Type infer_type(const Nodes& inputs, const Attributes& attributes, Where where) {
    return over_all_places(inputs, attributes, where)->type;
}

std::vector<Equality> equal_lengths(const Node& node) {
    const NodePtr dense = over_all_places(node.inputs, node.attributes, node.where);
    std::vector<Equality> all = conv_grad_w_op()->equalities(*dense);
    std::vector<Equality> pooled = unpool_op()->equalities(*dense->inputs[1]);
    all.insert(all.end(), std::make_move_iterator(pooled.begin()), std::make_move_iterator(pooled.end()));
    return all;
}

// Padding counts as zeros that are multiplied, as in the convolution itself.
Array evaluate_sum(const Node& node, const std::vector<Array>& inputs) {
    const ConvGeometry conv = ConvGeometry::of(node.attributes);
    const PoolGeometry pooling = pooling_of(node.attributes);
    const Dims &xs = inputs[0].shape(), &gs = inputs[1].shape();
    const Dims rs = static_dims(node.type.shape);
    const auto x = inputs[0].view<double>(), g = inputs[1].view<double>();
    const std::vector<std::int64_t> winner = inputs[2].to_vector<std::int64_t>();
    Array result(float64, rs);
    auto* out = static_cast<double*>(result.mutable_data());
    // What tap (ky, kx) of channel c meets at the winner of a window.
    const auto met = [&](std::int64_t n, std::int64_t c, std::int64_t py, std::int64_t px, std::int64_t cell,
                         std::int64_t ky, std::int64_t kx) {
        const std::int64_t oy = py * pooling.stride[0] - pooling.pad[0] + cell / pooling.window[1];
        const std::int64_t ox = px * pooling.stride[1] - pooling.pad[1] + cell % pooling.window[1];
        const std::int64_t y = conv.place(0, oy, ky, rs[2]), z = conv.place(1, ox, kx, rs[3]);
        const bool inside = y >= 0 && y < xs[2] && z >= 0 && z < xs[3];
        return inside ? x[static_cast<std::size_t>(((n * xs[1] + c) * xs[2] + y) * xs[3] + z)] : 0;
    };
    for (std::int64_t o = 0; o < rs[0]; ++o)
        for (std::int64_t c = 0; c < rs[1]; ++c)
            for (std::int64_t ky = 0; ky < rs[2]; ++ky)
                for (std::int64_t kx = 0; kx < rs[3]; ++kx) {
                    double sum = 0;
                    for (std::int64_t n = 0; n < gs[0]; ++n)
                        for (std::int64_t py = 0; py < gs[2]; ++py)
                            for (std::int64_t px = 0; px < gs[3]; ++px) {
                                const auto window =
                                    static_cast<std::size_t>(((n * gs[1] + o) * gs[2] + py) * gs[3] + px);
                                sum += g[window] * met(n, c, py, px, winner[window], ky, kx);
                            }
                    *out++ = sum;
                }
    return result;
}

// The winner's cell is known at run time only: a let gives the place that everything is read at.
Nest sum_over_windows(const Node& node) {
    const ConvGeometry conv = ConvGeometry::of(node.attributes);
    const PoolGeometry pooling = pooling_of(node.attributes);
    const Type &x = node.inputs[0]->type, &g = node.inputs[1]->type, &winner = node.inputs[2]->type;
    const Shape& r = node.type.shape;
    Nest nest;
    nest.dtype = nest.accumulator = node.type.dtype;
    nest.combine = Combine::sum;
    const Loop o = make_loop("o", r[0]), c = make_loop("c", r[1]);
    const std::array<Loop, pooled_axes> taps{make_loop("ky", r[2]), make_loop("kx", r[3])};
    const Loop n = make_loop("n", g.shape[0]);
    const std::array<Loop, pooled_axes> windows{make_loop("py", g.shape[2]), make_loop("px", g.shape[3])};
    nest.parallel = {o, c, taps[0], taps[1]};
    nest.reduced = {n, windows[0], windows[1]};
    const std::vector<Int> window{n.variable, o.variable, windows[0].variable, windows[1].variable};
    Int cell = 0;
    if (pooling.cells() > 1) {
        cell = Int::symbol("winner", {0, pooling.cells() - 1});
        nest.lets = {{cell, scalar_cast(int64, scalar_read(winner.dtype, 2, window)), pooling.cells()}};
    }
    const std::array<Int, pooled_axes> cells{floordiv(cell, pooling.window[1]), mod(cell, pooling.window[1])};
    std::vector<Int> at{n.variable, c.variable};
    std::vector<Guard> guards;
    for (std::size_t i = 0; i < pooled_axes; ++i) {
        const int axis = static_cast<int>(i);
        const Int place = windows[i].variable * pooling.stride[i] - pooling.pad[i] + cells[i];
        at.push_back(conv.place(axis, place, taps[i].variable, r[2 + i].constant()));
        // Without padding every cell lies inside; a winner never lies in the pooling's own padding, but its
        // clamped value might.
        if (conv.pad[i] > 0 || pooling.pad[i] > 0) guards.push_back({at.back(), 0, x.shape[2 + i]});
    }
    const Scalar outside = guards.empty() ? nullptr : scalar_constant(x.dtype, 0);
    nest.body = scalar_product(scalar_read(x.dtype, 0, at, guards, outside), scalar_read(g.dtype, 1, window));
    return nest;
}

Nodes gradients(const NodePtr& node, const NodePtr& other) {
    const NodePtr dense = through_all_places(node);
    const Nodes dense_gradients = conv_grad_w_op()->gradient(dense, other);
    return {dense_gradients[0], unpool_op()->gradient(dense->inputs[1], dense_gradients[1])[0], nullptr};
}

}  // namespace

const Op* conv_grad_w_winners_op() {
    static const Op* op = register_op({
        .name = "conv_grad_w_winners",
        .kind = OpKind::reduce,
        .arity = 3,
        .result = "a gradient of a convolution",
        .infer = infer_type,
        .equalities = equal_lengths,
        .gradient = gradients,
        .evaluate = evaluate_sum,
        .nest = sum_over_windows,
    });
    return op;
}

NodePtr through_winners(const NodePtr& conv_grad_w) {
    const NodePtr &x = conv_grad_w->inputs[0], &everywhere = conv_grad_w->inputs[1];
    BITALE_CHECK(conv_grad_w->op == conv_grad_w_op() && everywhere->op == unpool_op(),
                 "a convolution's gradient without winners");
    Attributes attributes = conv_grad_w->attributes;
    const PoolGeometry pooling = PoolGeometry::of(everywhere->attributes);
    const auto list = [](const std::array<std::int64_t, 2>& pair) { return Pair(pair.begin(), pair.end()); };
    attributes.set("pool_window", list(pooling.window));
    attributes.set("pool_stride", list(pooling.stride));
    attributes.set("pool_pad", list(pooling.pad));
    for (const char* length : {"height", "width"})
        attributes.set(length, everywhere->attributes.get<Int>(length));
    return make_node(conv_grad_w_winners_op(), {x, everywhere->inputs[0], everywhere->inputs[1]},
                     std::move(attributes), conv_grad_w->where);
}

NodePtr through_all_places(const NodePtr& conv_grad_w_winners) {
    return over_all_places(conv_grad_w_winners->inputs, conv_grad_w_winners->attributes,
                           conv_grad_w_winners->where);
}

}  // namespace bitale
