#include "ops/linear/conv_gradients.h"

#include "ops/linear/conv.h"
#include "ops/linear/conv_loops.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

// ---- With respect to the input
// ----------------------------------------------------------------------------------

Type infer_x(const Nodes& inputs, const Attributes& attributes, Where where) {
    const DType dtype = conv_dtype(inputs, "the gradient", "the filter tensor", where);
    const ConvAxes axes = ConvAxes::of(inputs, "a gradient", "filters", where);
    const Shape &g = inputs[0]->type.shape, &w = inputs[1]->type.shape;
    require_groups(axes, g[1], w[0], where);
    require_equal(g[axes.image_channels], w[axes.outputs],
                  "the outputs of gradient " + text_of(g) + " and filters " + text_of(w), where);
    const ConvGeometry geometry = ConvGeometry::of(attributes);
    const Int lengths[2] = {attributes.get<Int>("height"), attributes.get<Int>("width")};
    for (int i = 0; i < 2; ++i)
        require_equal(g[axes.window + static_cast<std::size_t>(i)],
                      geometry.output_length(i, lengths[i], kernel_length(inputs[1], i, where)),
                      "the gradient's shape and that of the convolution's result", where);
    return {dtype, axes.at_image(g[0], axes.grouped ? g[1] : Int(1), w[axes.filter_channels], lengths[0],
                                 lengths[1])};
}

std::vector<Equality> equalities_x(const Node& node) {
    const Shape &g = node.inputs[0]->type.shape, &w = node.inputs[1]->type.shape;
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    std::vector<Equality> r;
    const ConvAxes axes = ConvAxes::of(node.type.rank());
    const std::size_t at = axes.window;
    if (axes.grouped)
        demand_equal(r, g[1], w[0], "the groups of a convolution's gradient and of its filters");
    demand_equal(r, g[axes.image_channels], w[axes.outputs],
                 "the outputs of a convolution's gradient and of its filters");
    for (std::size_t i = 0; i < 2; ++i)
        demand_equal(
            r, g[at + i],
            geometry.output_length(static_cast<int>(i), node.type.shape[at + i], w[at + i].constant()),
            "the lengths of a convolution's gradient and of its result");
    return r;
}

Array evaluate_x(const Node& node, const std::vector<Array>& inputs) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Dims shape = static_dims(node.type.shape);
    const ConvLoops l = ConvLoops::of(shape, inputs[1].shape(), inputs[0].shape());
    const auto g = inputs[0].view<double>(), w = inputs[1].view<double>();
    Array result(float64, shape);
    auto* out = static_cast<double*>(result.mutable_data());
    l.over_outputs([&](std::int64_t n, std::int64_t group, std::int64_t o, std::int64_t oy, std::int64_t ox) {
        l.over_taps([&](std::int64_t c, std::int64_t ky, std::int64_t kx) {
            const std::int64_t y = geometry.place(0, oy, ky, l.filter[0]);
            const std::int64_t z = geometry.place(1, ox, kx, l.filter[1]);
            if (l.inside(y, z))
                out[l.image_at(n, group, c, y, z)] +=
                    g[l.output_at(n, group, o, oy, ox)] * w[l.filter_at(group, o, c, ky, kx)];
        });
    });
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

// Whether an axis has one output alone, as where filters are as large as the images: each place then meets
// one tap, the others would be asked for nothing.
bool has_one_output(const ConvGeometry& geometry, int axis, const Int& outputs) {
    const auto i = static_cast<std::size_t>(axis);
    return outputs.is(1) && geometry.dilation[i] == 1;
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
    const ConvAxes axes = ConvAxes::of(node.type.rank());
    const std::size_t at = axes.window;
    const Loop n = make_loop("n", r[0]), c = make_loop("c", r[axes.image_channels]),
               y = make_loop("y", r[at]), z = make_loop("x", r[at + 1]);
    const Loop o = make_loop("o", w[axes.outputs]);
    std::vector<Loop> met;
    std::vector<Guard> outputs, taps;
    Int row[2], tap[2];
    for (const int i : {0, 1}) {
        const Int &place = (i ? z : y).variable, &there = g[at + static_cast<std::size_t>(i)];
        const std::int64_t kernel = w[at + static_cast<std::size_t>(i)].constant();
        if (has_one_output(geometry, i, there)) {
            met.push_back(make_loop("o", 1));
            row[i] = 0;
            const Int first = geometry.place(i, 0, 0, kernel);
            tap[i] = geometry.flip ? first - place : place - first;
            taps.push_back({tap[i], 0, kernel});
        } else {
            met.push_back(make_loop("k", kernel));
            tap[i] = met.back().variable;
            row[i] = output_place(geometry, i, place, tap[i], kernel, there, nest.guards, outputs);
        }
    }
    const Loop group = make_loop("g", axes.grouped ? r[1] : Int(1));
    nest.parallel = axes.grouped ? std::vector<Loop>{n, group, c, y, z} : std::vector<Loop>{n, c, y, z};
    nest.reduced =
        sums_taps_first(node) ? std::vector<Loop>{met[0], met[1], o} : std::vector<Loop>{o, met[0], met[1]};
    const DType t = nest.dtype;
    const auto outside = [&](const std::vector<Guard>& guards) {
        return guards.empty() ? nullptr : scalar_constant(t, 0);
    };
    const Int& in = group.variable;
    nest.body = scalar_product(
        scalar_read(t, 0, axes.at_image(n.variable, in, o.variable, row[0], row[1]), outputs,
                    outside(outputs)),
        scalar_read(t, 1, axes.at_filter(in, o.variable, c.variable, tap[0], tap[1]), taps, outside(taps)));
    return nest;
}

Nodes gradient_x(const NodePtr& node, const NodePtr& other) {
    const NodePtr &g = node->inputs[0], &w = node->inputs[1];
    const ConvGeometry geometry = ConvGeometry::of(node->attributes);
    const std::size_t at = ConvAxes::of(node->type.rank()).window;
    return {make_node(conv_op(), {other, w}, geometry.attributes(), node->where),
            make_conv_grad_w(other, g, geometry,
                             {w->type.shape[at].constant(), w->type.shape[at + 1].constant()}, node->where)};
}

// ---- With respect to the filters
// --------------------------------------------------------------------------------

Type infer_w(const Nodes& inputs, const Attributes& attributes, Where where) {
    const DType dtype = conv_dtype(inputs, "the input", "the gradient", where);
    const ConvAxes axes = ConvAxes::of(inputs, "an input", "a gradient", where);
    const Shape &x = inputs[0]->type.shape, &g = inputs[1]->type.shape;
    require_groups(axes, x[1], g[1], where);
    require_equal(x[0], g[0], "the counts of images of input " + text_of(x) + " and gradient " + text_of(g),
                  where);
    const ConvGeometry geometry = ConvGeometry::of(attributes);
    const auto& kernel = attributes.get<std::vector<std::int64_t>>("kernel");
    for (std::size_t i = 0; i < 2; ++i)
        require_equal(g[axes.window + i],
                      geometry.output_length(static_cast<int>(i), x[axes.window + i], kernel[i]),
                      "the gradient's shape and that of the convolution's result", where);
    return {dtype, axes.at_filter(axes.grouped ? x[1] : Int(1), g[axes.image_channels],
                                  x[axes.image_channels], kernel[0], kernel[1])};
}

std::vector<Equality> equalities_w(const Node& node) {
    const Shape &x = node.inputs[0]->type.shape, &g = node.inputs[1]->type.shape;
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const auto& kernel = node.attributes.get<std::vector<std::int64_t>>("kernel");
    std::vector<Equality> r;
    const ConvAxes axes = ConvAxes::of(node.type.rank());
    const std::size_t at = axes.window;
    demand_equal(r, x[0], g[0], "the counts of images of a convolution's input and of its gradient");
    if (axes.grouped) demand_equal(r, x[1], g[1], "the groups of a convolution's input and of its gradient");
    for (std::size_t i = 0; i < 2; ++i)
        demand_equal(r, g[at + i], geometry.output_length(static_cast<int>(i), x[at + i], kernel[i]),
                     "the lengths of a convolution's gradient and of its result");
    return r;
}

Array evaluate_w(const Node& node, const std::vector<Array>& inputs) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Dims shape = static_dims(node.type.shape);
    const ConvLoops l = ConvLoops::of(inputs[0].shape(), shape, inputs[1].shape());
    const auto x = inputs[0].view<double>(), g = inputs[1].view<double>();
    Array result(float64, shape);
    auto* out = static_cast<double*>(result.mutable_data());
    l.over_outputs([&](std::int64_t n, std::int64_t group, std::int64_t o, std::int64_t oy, std::int64_t ox) {
        l.over_taps([&](std::int64_t c, std::int64_t ky, std::int64_t kx) {
            const std::int64_t y = geometry.place(0, oy, ky, l.filter[0]);
            const std::int64_t z = geometry.place(1, ox, kx, l.filter[1]);
            const double value = l.inside(y, z) ? x[l.image_at(n, group, c, y, z)] : 0;
            out[l.filter_at(group, o, c, ky, kx)] += value * g[l.output_at(n, group, o, oy, ox)];
        });
    });
    return result;
}

Nest nest_w(const Node& node) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Shape &x = node.inputs[0]->type.shape, &g = node.inputs[1]->type.shape, &r = node.type.shape;
    Nest nest;
    nest.dtype = nest.accumulator = node.type.dtype;
    nest.combine = Combine::sum;
    const ConvAxes axes = ConvAxes::of(node.type.rank());
    const std::size_t at = axes.window;
    const Loop o = make_loop("o", r[axes.outputs]), c = make_loop("c", r[axes.filter_channels]);
    const Loop ky = make_loop("ky", r[at]), kx = make_loop("kx", r[at + 1]);
    const Loop n = make_loop("n", g[0]), y = make_loop("y", g[at]), z = make_loop("x", g[at + 1]);
    const Loop group = make_loop("g", axes.grouped ? r[0] : Int(1));
    nest.parallel = axes.grouped ? std::vector<Loop>{group, o, c, ky, kx} : std::vector<Loop>{o, c, ky, kx};
    nest.reduced = {n, y, z};
    const Int row = geometry.place(0, y.variable, ky.variable, r[at].constant());
    const Int column = geometry.place(1, z.variable, kx.variable, r[at + 1].constant());
    std::vector<Guard> guards;
    if (geometry.pad[0] > 0) guards.push_back({row, 0, x[at]});
    if (geometry.pad[1] > 0) guards.push_back({column, 0, x[at + 1]});
    const DType t = nest.dtype;
    const Scalar outside = guards.empty() ? nullptr : scalar_constant(t, 0);
    const Int& in = group.variable;
    nest.body = scalar_product(
        scalar_read(t, 0, axes.at_image(n.variable, in, c.variable, row, column), guards, outside),
        scalar_read(t, 1, axes.at_image(n.variable, in, o.variable, y.variable, z.variable)));
    return nest;
}

Nodes gradient_w(const NodePtr& node, const NodePtr& other) {
    const NodePtr &x = node->inputs[0], &g = node->inputs[1];
    const ConvGeometry geometry = ConvGeometry::of(node->attributes);
    const std::size_t at = ConvAxes::of(node->type.rank()).window;
    return {make_conv_grad_x(g, other, geometry, x->type.shape[at], x->type.shape[at + 1], node->where),
            make_node(conv_op(), {x, other}, geometry.attributes(), node->where)};
}

}  // namespace

const Op* conv_grad_x_op() {
    static const Op* op = [] {
        Op r;
        r.name = "conv_grad_x";
        r.kind = OpKind::reduce;
        r.arity = 2;
        r.result = "a gradient of a convolution";
        r.convolution = Convolution::image_gradient;
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
        r.result = "a gradient of a convolution";
        r.convolution = Convolution::filter_gradient;
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
