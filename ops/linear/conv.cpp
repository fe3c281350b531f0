#include "ops/linear/conv.h"

#include <array>
#include <utility>

#include "graph/ir/fault_text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/linear/conv_geometry.h"
#include "ops/linear/conv_gradients.h"
#include "ops/linear/conv_loops.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

constexpr const char* axis_name[2] = {"height", "width"};

std::string operands_text(const Node& x, const Node& w) {
    return "conv2d of " + describe(x) + " with the filters " + describe(w);
}

std::string unlike_channels(const Node& x, const std::string& channels, const Node& w,
                            const std::string& wanted, const ConvAxes& axes) {
    return operands_text(x, w) + ": each filter reads as many channels as the input has, but " +
           unlike_lengths(x, axes.image_channels, channels, w, axes.filter_channels, wanted) +
           "; images are [n, channels, height, width], filters [out, channels, height, width]" +
           (axes.grouped || never_equal(x.type.shape.back(), w.type.shape[axes.filter_channels])
                ? ""
                : "; transpose(x, {0, 3, 1, 2}) makes such images of [n, h, w, c]");
}

// `there`: the length of the images along the axis, with their padding.
std::string no_room(const ConvGeometry& geometry, int axis, const Node& x, const Node& w, std::int64_t span,
                    const std::string& there) {
    const auto i = static_cast<std::size_t>(axis);
    const std::string padding = std::to_string(geometry.pad[i]);
    return operands_text(x, w) + ": the " + axis_name[i] + " of a filter, " + std::to_string(span) +
           (geometry.dilation[i] == 1 ? "" : " with dilation") + ", is more than that of the images, " +
           there +
           (geometry.pad[i] == 0 ? "; .border_mode = half pads them"
                                 : " with padding " + padding + " on both sides");
}

// Throws where the filters can never fit into the padded images.
void require_room(const ConvGeometry& geometry, int axis, const Nodes& inputs, std::int64_t kernel,
                  Where where) {
    const auto i = static_cast<std::size_t>(axis);
    const Shape& image = inputs[0]->type.shape;
    const Int there = image[image.size() - 2 + i] + 2 * geometry.pad[i];
    const std::int64_t span = geometry.span(axis, kernel);
    if (there.range().high < span)
        throw ShapeError(where, no_room(geometry, axis, *inputs[0], *inputs[1], span, there.text()));
}

Type infer(const Nodes& inputs, const Attributes& attributes, Where where) {
    const DType dtype = conv_dtype(inputs, "the input", "the filter tensor", where);
    const ConvAxes axes = ConvAxes::of(inputs, "an input", "filters", where);
    const Shape &x = inputs[0]->type.shape, &w = inputs[1]->type.shape;
    require_groups(axes, x[1], w[0], where);
    const Int &channels = x[axes.image_channels], &wanted = w[axes.filter_channels];
    if (never_equal(channels, wanted))
        throw ShapeError(where,
                         unlike_channels(*inputs[0], channels.text(), *inputs[1], wanted.text(), axes));
    const ConvGeometry geometry = ConvGeometry::of(attributes);
    std::array<Int, 2> lengths;
    for (std::size_t i = 0; i < 2; ++i) {
        const auto axis = static_cast<int>(i);
        const std::int64_t kernel = kernel_length(inputs[1], axis, where);
        require_room(geometry, axis, inputs, kernel, where);
        lengths[i] = geometry.output_length(axis, x[axes.window + i], kernel);
    }
    return {dtype,
            axes.at_image(x[0], axes.grouped ? x[1] : Int(1), w[axes.outputs], lengths[0], lengths[1])};
}

std::vector<Equality> equalities(const Node& node) {
    const Shape &x = node.inputs[0]->type.shape, &w = node.inputs[1]->type.shape;
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    std::vector<Equality> r;
    const ConvAxes axes = ConvAxes::of(node.type.rank());
    if (axes.grouped) demand_equal(r, x[1], w[0], "the groups of conv2d's input and of its filters");
    demand_equal(r, x[axes.image_channels], w[axes.filter_channels],
                 unlike_channels(*node.inputs[0], number_found(), *node.inputs[1], number_there(), axes));
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t span = geometry.span(static_cast<int>(i), w[axes.window + i].constant());
        demand_at_most(
            r, span, x[axes.window + i] + 2 * geometry.pad[i],
            no_room(geometry, static_cast<int>(i), *node.inputs[0], *node.inputs[1], span, number_there()));
    }
    return r;
}

// Padding counts as zeros that are multiplied: 0 * infinity is NaN there, as in an input padded by hand.
Array evaluate_conv(const Node& node, const std::vector<Array>& inputs) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const ConvLoops l = ConvLoops::of(inputs[0].shape(), inputs[1].shape(), static_dims(node.type.shape));
    const auto x = inputs[0].view<double>(), w = inputs[1].view<double>();
    Array result(float64, static_dims(node.type.shape));
    auto* out = static_cast<double*>(result.mutable_data());
    l.over_outputs([&](std::int64_t n, std::int64_t g, std::int64_t o, std::int64_t oy, std::int64_t ox) {
        double sum = 0;
        l.over_taps([&](std::int64_t c, std::int64_t ky, std::int64_t kx) {
            const std::int64_t y = geometry.place(0, oy, ky, l.filter[0]);
            const std::int64_t z = geometry.place(1, ox, kx, l.filter[1]);
            const double value = l.inside(y, z) ? x[l.image_at(n, g, c, y, z)] : 0;
            sum += value * w[l.filter_at(g, o, c, ky, kx)];
        });
        out[l.output_at(n, g, o, oy, ox)] = sum;
    });
    return result;
}

Nest nest(const Node& node) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const ConvAxes axes = ConvAxes::of(node.type.rank());
    const Shape &x = node.inputs[0]->type.shape, &w = node.inputs[1]->type.shape, &r = node.type.shape;
    Nest nest;
    nest.dtype = nest.accumulator = node.type.dtype;
    nest.combine = Combine::sum;
    const std::size_t at = axes.window;
    const Loop n = make_loop("n", r[0]), o = make_loop("o", r[axes.image_channels]),
               y = make_loop("y", r[at]), z = make_loop("x", r[at + 1]);
    const Loop c = make_loop("c", w[axes.filter_channels]), ky = make_loop("ky", w[at]),
               kx = make_loop("kx", w[at + 1]);
    const Loop group = make_loop("g", axes.grouped ? r[1] : Int(1));
    nest.parallel = axes.grouped ? std::vector<Loop>{n, group, o, y, z} : std::vector<Loop>{n, o, y, z};
    nest.reduced = {c, ky, kx};
    const Int row = geometry.place(0, y.variable, ky.variable, w[at].constant());
    const Int column = geometry.place(1, z.variable, kx.variable, w[at + 1].constant());
    std::vector<Guard> guards;  // without padding the output's length keeps the kernel inside
    if (geometry.pad[0] > 0) guards.push_back({row, 0, x[at]});
    if (geometry.pad[1] > 0) guards.push_back({column, 0, x[at + 1]});
    const DType t = nest.dtype;
    const Scalar outside = guards.empty() ? nullptr : scalar_constant(t, 0);
    const Int& g = group.variable;
    nest.body = scalar_product(
        scalar_read(t, 0, axes.at_image(n.variable, g, c.variable, row, column), guards, outside),
        scalar_read(t, 1, axes.at_filter(g, o.variable, c.variable, ky.variable, kx.variable)));
    return nest;
}

Nodes gradient(const NodePtr& node, const NodePtr& g) {
    const NodePtr &x = node->inputs[0], &w = node->inputs[1];
    const std::size_t at = ConvAxes::of(node->type.rank()).window;
    return {make_conv_grad_x(g, w, ConvGeometry::of(node->attributes), x->type.shape[at],
                             x->type.shape[at + 1], node->where),
            make_conv_grad_w(x, g, ConvGeometry::of(node->attributes),
                             {w->type.shape[at].constant(), w->type.shape[at + 1].constant()}, node->where)};
}

// [n, c, h, w] -> [n, groups, c / groups, h, w], and filters [o, c / groups, kh, kw] -> [groups, o / groups,
// c / groups, kh, kw]: views of the same memory.
std::pair<NodePtr, NodePtr> in_groups(NodePtr x, const NodePtr& w, std::int64_t groups, Where where) {
    const Shape &image = x->type.shape, &filters = w->type.shape;
    const Int channels = groups * filters[1];
    const std::string shapes = "input " + text_of(image) + ", filters " + text_of(filters);
    if (never_equal(image[1], channels))
        throw ShapeError(where, "conv2d with " + std::to_string(groups) + " groups of " + filters[1].text() +
                                    " channels, as its filters have, takes an input of " + channels.text() +
                                    " channels, not " + image[1].text() + "; " + shapes);
    if (filters[0].is_constant() && filters[0].constant() % groups != 0)
        throw ShapeError(where, "conv2d: " + filters[0].text() + " filters cannot be shared out to " +
                                    std::to_string(groups) + " groups; " + shapes);
    // A broadcast to its own shape demands at the call that the channels fit.
    if (!(image[1] == channels)) x = make_expand(x, {image[0], channels, image[2], image[3]}, where);
    return {
        make_reshape(x, {image[0], groups, filters[1], image[2], image[3]}, where),
        make_reshape(w, {groups, floordiv(filters[0], groups), filters[1], filters[2], filters[3]}, where)};
}

}  // namespace

const Op* conv_op() {
    static const Op* op = [] {
        Op r;
        r.name = "conv";
        r.title = "conv2d";
        r.kind = OpKind::reduce;
        r.arity = 2;
        r.result = "a convolution";
        r.convolution = Convolution::forward;
        r.infer = infer;
        r.equalities = equalities;
        r.gradient = gradient;
        r.evaluate = evaluate_conv;
        r.nest = nest;
        return register_op(std::move(r));
    }();
    return op;
}

void register_conv_ops() {
    conv_op();
    conv_grad_x_op();
    conv_grad_w_op();
}

Expr conv2d(const Expr& input, const Expr& filters, ConvOptions options, Where where) try {
    require_present("conv2d", {&input, &filters}, where);
    ConvGeometry geometry;
    geometry.flip = options.filter_flip;
    geometry.stride = {options.subsample.h, options.subsample.w};
    geometry.dilation = {options.dilation.h, options.dilation.w};
    for (std::size_t i = 0; i < 2; ++i)
        if (geometry.stride[i] < 1 || geometry.dilation[i] < 1)
            throw ShapeError(where, "conv2d: subsample and dilation must be at least 1, but are " +
                                        std::to_string(geometry.stride[i]) + " and " +
                                        std::to_string(geometry.dilation[i]));
    require_4d(filters.node(), "filters", "[outputs, channels, height, width]", where);
    const std::array<std::int64_t, 2> kernel{kernel_length(filters.node(), 0, where),
                                             kernel_length(filters.node(), 1, where)};
    const Border border = options.border_mode;
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t span = geometry.span(static_cast<int>(i), kernel[i]);
        switch (border.kind) {
            case Border::Kind::valid: geometry.pad[i] = 0; break;
            case Border::Kind::full: geometry.pad[i] = span - 1; break;
            case Border::Kind::half: geometry.pad[i] = span / 2; break;
            case Border::Kind::pad: geometry.pad[i] = i == 0 ? border.h : border.w; break;
        }
        if (geometry.pad[i] < 0)
            throw ShapeError(
                where, "conv2d: the padding must be at least 0, but is " + std::to_string(geometry.pad[i]));
    }
    if (options.groups < 1)
        throw ShapeError(where,
                         "conv2d: groups must be at least 1, but is " + std::to_string(options.groups));
    if (options.groups == 1) return apply(conv_op(), {input, filters}, geometry.attributes(), where);
    conv_dtype({input.node(), filters.node()}, "the input", "the filter tensor", where);
    require_4d(input.node(), "an input", "[n, channels, height, width]", where);
    const auto [x, w] = in_groups(input.node(), filters.node(), options.groups, where);
    const NodePtr y = make_node(conv_op(), {x, w}, geometry.attributes(), where);
    const Shape& r = y->type.shape;
    return wrap(make_reshape(y, {r[0], filters.node()->type.shape[0], r[3], r[4]}, where));
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
