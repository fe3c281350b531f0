#include "ops/linear/conv_gradients.h"

#include "ops/linear/conv.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

// ---- With respect to the input
// ----------------------------------------------------------------------------------

Type infer_x(const Nodes& inputs, const Attributes& attributes, Where where) {
    const DType dtype = conv_dtype(inputs, "the gradient", "the filter tensor", where);
    require_4d(inputs[0], "a gradient", "[n, outputs, height, width]", where);
    require_4d(inputs[1], "filters", "[outputs, channels, height, width]", where);
    const Shape &g = inputs[0]->type.shape, &w = inputs[1]->type.shape;
    require_equal(g[1], w[0], "the outputs of gradient " + text_of(g) + " and filters " + text_of(w), where);
    const ConvGeometry geometry = ConvGeometry::of(attributes);
    const Int lengths[2] = {attributes.get<Int>("height"), attributes.get<Int>("width")};
    for (int i = 0; i < 2; ++i)
        require_equal(g[2 + static_cast<std::size_t>(i)],
                      geometry.output_length(i, lengths[i], kernel_length(inputs[1], i, where)),
                      "the gradient's shape and that of the convolution's result", where);
    return {dtype, {g[0], w[1], lengths[0], lengths[1]}};
}

std::vector<Equality> equalities_x(const Node& node) {
    const Shape &g = node.inputs[0]->type.shape, &w = node.inputs[1]->type.shape;
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    std::vector<Equality> r;
    demand_equal(r, g[1], w[0], "the outputs of a convolution's gradient and of its filters");
    for (std::size_t i = 0; i < 2; ++i)
        demand_equal(r, g[2 + i],
                     geometry.output_length(static_cast<int>(i), node.type.shape[2 + i], w[2 + i].constant()),
                     "the lengths of a convolution's gradient and of its result");
    return r;
}

Array evaluate_x(const Node& node, const std::vector<Array>& inputs) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Dims &gs = inputs[0].shape(), &ws = inputs[1].shape();
    const Dims rs = static_dims(node.type.shape);
    const auto g = inputs[0].view<double>(), w = inputs[1].view<double>();
    Array result(float64, rs);
    auto* out = static_cast<double*>(result.mutable_data());
    for (std::int64_t n = 0; n < gs[0]; ++n)
        for (std::int64_t o = 0; o < gs[1]; ++o)
            for (std::int64_t oy = 0; oy < gs[2]; ++oy)
                for (std::int64_t ox = 0; ox < gs[3]; ++ox)
                    for (std::int64_t c = 0; c < ws[1]; ++c)
                        for (std::int64_t ky = 0; ky < ws[2]; ++ky)
                            for (std::int64_t kx = 0; kx < ws[3]; ++kx) {
                                const std::int64_t y = geometry.place(0, oy, ky, ws[2]);
                                const std::int64_t z = geometry.place(1, ox, kx, ws[3]);
                                if (y < 0 || y >= rs[2] || z < 0 || z >= rs[3]) continue;
                                const std::int64_t from = ((n * gs[1] + o) * gs[2] + oy) * gs[3] + ox;
                                const std::int64_t tap = ((o * ws[1] + c) * ws[2] + ky) * ws[3] + kx;
                                out[((n * rs[1] + c) * rs[2] + y) * rs[3] + z] +=
                                    g[static_cast<std::size_t>(from)] * w[static_cast<std::size_t>(tap)];
                            }
    return result;
}

// The output place whose tap `element` meets input place `at`; `meets`: the taps that some place could meet
// it with, `inside`: where that place is an output.
Int output_place(const ConvGeometry& geometry, int axis, const Int& at, const Int& element,
                 std::int64_t kernel, const Int& outputs, std::vector<Guard>& meets,
                 std::vector<Guard>& inside) {
    const std::int64_t stride = geometry.stride[static_cast<std::size_t>(axis)];
    const Int distance = at - geometry.place(axis, 0, element, kernel);
    Int place = floordiv(distance, stride);
    if (stride > 1) meets.push_back({mod(distance, stride), 0, 1});
    const bool whole = stride == 1 && kernel == 1 && geometry.pad[static_cast<std::size_t>(axis)] == 0;
    if (!whole) inside.push_back({place, 0, outputs});
    return place;
}

constexpr const char* taps_first = "taps_first";

bool sums_taps_first(const Node& node) {
    return node.attributes.find(taps_first) && node.attributes.get<bool>(taps_first);
}

Nest nest_x(const Node& node) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Shape &g = node.inputs[0]->type.shape, &w = node.inputs[1]->type.shape, &r = node.type.shape;
    Nest nest;
    nest.dtype = nest.accumulator = node.type.dtype;
    nest.combine = Combine::sum;
    const Loop n = make_loop("n", r[0]), c = make_loop("c", r[1]), y = make_loop("y", r[2]),
               z = make_loop("x", r[3]);
    const Loop o = make_loop("o", w[0]), ky = make_loop("ky", w[2]), kx = make_loop("kx", w[3]);
    nest.parallel = {n, c, y, z};
    nest.reduced = sums_taps_first(node) ? std::vector<Loop>{ky, kx, o} : std::vector<Loop>{o, ky, kx};
    std::vector<Guard> guards;
    const Int row =
        output_place(geometry, 0, y.variable, ky.variable, w[2].constant(), g[2], nest.guards, guards);
    const Int column =
        output_place(geometry, 1, z.variable, kx.variable, w[3].constant(), g[3], nest.guards, guards);
    const DType t = nest.dtype;
    const Scalar outside = guards.empty() ? nullptr : scalar_constant(t, 0);
    nest.body = scalar_product(scalar_read(t, 0, {n.variable, o.variable, row, column}, guards, outside),
                               scalar_read(t, 1, {o.variable, c.variable, ky.variable, kx.variable}));
    return nest;
}

Nodes gradient_x(const NodePtr& node, const NodePtr& other) {
    const NodePtr &g = node->inputs[0], &w = node->inputs[1];
    const ConvGeometry geometry = ConvGeometry::of(node->attributes);
    return {make_node(conv_op(), {other, w}, geometry.attributes(), node->where),
            make_conv_grad_w(other, g, geometry, {w->type.shape[2].constant(), w->type.shape[3].constant()},
                             node->where)};
}

// ---- With respect to the filters
// --------------------------------------------------------------------------------

Type infer_w(const Nodes& inputs, const Attributes& attributes, Where where) {
    const DType dtype = conv_dtype(inputs, "the input", "the gradient", where);
    require_4d(inputs[0], "an input", "[n, channels, height, width]", where);
    require_4d(inputs[1], "a gradient", "[n, outputs, height, width]", where);
    const Shape &x = inputs[0]->type.shape, &g = inputs[1]->type.shape;
    require_equal(x[0], g[0], "the counts of images of input " + text_of(x) + " and gradient " + text_of(g),
                  where);
    const ConvGeometry geometry = ConvGeometry::of(attributes);
    const auto& kernel = attributes.get<std::vector<std::int64_t>>("kernel");
    for (std::size_t i = 0; i < 2; ++i)
        require_equal(g[2 + i], geometry.output_length(static_cast<int>(i), x[2 + i], kernel[i]),
                      "the gradient's shape and that of the convolution's result", where);
    return {dtype, {g[1], x[1], kernel[0], kernel[1]}};
}

std::vector<Equality> equalities_w(const Node& node) {
    const Shape &x = node.inputs[0]->type.shape, &g = node.inputs[1]->type.shape;
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const auto& kernel = node.attributes.get<std::vector<std::int64_t>>("kernel");
    std::vector<Equality> r;
    demand_equal(r, x[0], g[0], "the counts of images of a convolution's input and of its gradient");
    for (std::size_t i = 0; i < 2; ++i)
        demand_equal(r, g[2 + i], geometry.output_length(static_cast<int>(i), x[2 + i], kernel[i]),
                     "the lengths of a convolution's gradient and of its result");
    return r;
}

Array evaluate_w(const Node& node, const std::vector<Array>& inputs) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Dims &xs = inputs[0].shape(), &gs = inputs[1].shape();
    const Dims rs = static_dims(node.type.shape);
    const auto x = inputs[0].view<double>(), g = inputs[1].view<double>();
    Array result(float64, rs);
    auto* out = static_cast<double*>(result.mutable_data());
    for (std::int64_t o = 0; o < rs[0]; ++o)
        for (std::int64_t c = 0; c < rs[1]; ++c)
            for (std::int64_t ky = 0; ky < rs[2]; ++ky)
                for (std::int64_t kx = 0; kx < rs[3]; ++kx) {
                    double sum = 0;
                    for (std::int64_t n = 0; n < gs[0]; ++n)
                        for (std::int64_t oy = 0; oy < gs[2]; ++oy)
                            for (std::int64_t ox = 0; ox < gs[3]; ++ox) {
                                const std::int64_t y = geometry.place(0, oy, ky, rs[2]);
                                const std::int64_t z = geometry.place(1, ox, kx, rs[3]);
                                const bool inside = y >= 0 && y < xs[2] && z >= 0 && z < xs[3];
                                const std::int64_t from = ((n * xs[1] + c) * xs[2] + y) * xs[3] + z;
                                const double value = inside ? x[static_cast<std::size_t>(from)] : 0;
                                const std::int64_t place = ((n * gs[1] + o) * gs[2] + oy) * gs[3] + ox;
                                sum += value * g[static_cast<std::size_t>(place)];
                            }
                    *out++ = sum;
                }
    return result;
}

Nest nest_w(const Node& node) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Shape &x = node.inputs[0]->type.shape, &g = node.inputs[1]->type.shape, &r = node.type.shape;
    Nest nest;
    nest.dtype = nest.accumulator = node.type.dtype;
    nest.combine = Combine::sum;
    const Loop o = make_loop("o", r[0]), c = make_loop("c", r[1]);
    const Loop ky = make_loop("ky", r[2]), kx = make_loop("kx", r[3]);
    const Loop n = make_loop("n", g[0]), y = make_loop("y", g[2]), z = make_loop("x", g[3]);
    nest.parallel = {o, c, ky, kx};
    nest.reduced = {n, y, z};
    const Int row = geometry.place(0, y.variable, ky.variable, r[2].constant());
    const Int column = geometry.place(1, z.variable, kx.variable, r[3].constant());
    std::vector<Guard> guards;
    if (geometry.pad[0] > 0) guards.push_back({row, 0, x[2]});
    if (geometry.pad[1] > 0) guards.push_back({column, 0, x[3]});
    const DType t = nest.dtype;
    const Scalar outside = guards.empty() ? nullptr : scalar_constant(t, 0);
    nest.body = scalar_product(scalar_read(t, 0, {n.variable, c.variable, row, column}, guards, outside),
                               scalar_read(t, 1, {n.variable, o.variable, y.variable, z.variable}));
    return nest;
}

Nodes gradient_w(const NodePtr& node, const NodePtr& other) {
    const NodePtr &x = node->inputs[0], &g = node->inputs[1];
    const ConvGeometry geometry = ConvGeometry::of(node->attributes);
    return {make_conv_grad_x(g, other, geometry, x->type.shape[2], x->type.shape[3], node->where),
            make_node(conv_op(), {x, other}, geometry.attributes(), node->where)};
}

}  // namespace

const Op* conv_grad_x_op() {
    static const Op* op = [] {
        Op r;
        r.name = "conv_grad_x";
        r.kind = OpKind::reduce;
        r.arity = 2;
        r.infer = infer_x;
        r.equalities = equalities_x;
        r.gradient = gradient_x;
        r.evaluate = evaluate_x;
        r.nest = nest_x;
        return register_op(std::move(r));
    }();
    return op;
}

const Op* conv_grad_w_op() {
    static const Op* op = [] {
        Op r;
        r.name = "conv_grad_w";
        r.kind = OpKind::reduce;
        r.arity = 2;
        r.infer = infer_w;
        r.equalities = equalities_w;
        r.gradient = gradient_w;
        r.evaluate = evaluate_w;
        r.nest = nest_w;
        return register_op(std::move(r));
    }();
    return op;
}

NodePtr make_conv_grad_x(const NodePtr& g, const NodePtr& w, const ConvGeometry& geometry, const Int& height,
                         const Int& width, Where where) {
    Attributes attributes = geometry.attributes();
    attributes.set("height", height);
    attributes.set("width", width);
    return make_node(conv_grad_x_op(), {g, w}, std::move(attributes), where);
}

NodePtr with_taps_first(const NodePtr& conv_grad_x) {
    if (sums_taps_first(*conv_grad_x)) return nullptr;
    Attributes attributes = conv_grad_x->attributes;
    attributes.set(taps_first, true);
    return make_node(conv_grad_x_op(), conv_grad_x->inputs, std::move(attributes), conv_grad_x->where);
}

NodePtr make_conv_grad_w(const NodePtr& x, const NodePtr& g, const ConvGeometry& geometry,
                         std::array<std::int64_t, 2> kernel, Where where) {
    Attributes attributes = geometry.attributes();
    attributes.set("kernel", std::vector<std::int64_t>(kernel.begin(), kernel.end()));
    return make_node(conv_grad_w_op(), {x, g}, std::move(attributes), where);
}

}  // namespace bitale
