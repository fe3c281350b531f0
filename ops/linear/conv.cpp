#include "ops/linear/conv.h"

#include "ops/dsl/build.h"
#include "ops/linear/conv_geometry.h"
#include "ops/linear/conv_gradients.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

constexpr const char* axis_name[2] = {"height", "width"};

// Throws where the kernel can never fit into the padded input.
void require_room(const ConvGeometry& geometry, int axis, const Nodes& inputs, std::int64_t kernel,
                  Where where) {
    const auto i = static_cast<std::size_t>(axis);
    const Int& input = inputs[0]->type.shape[2 + i];
    if ((input + 2 * geometry.pad[i]).range().high >= geometry.span(axis, kernel)) return;
    throw ShapeError(
        where, "conv2d: a kernel of " + std::string(axis_name[i]) + " " + std::to_string(kernel) +
                   " with dilation " + std::to_string(geometry.dilation[i]) + " spans " +
                   std::to_string(geometry.span(axis, kernel)) + ", more than the input's " + input.text() +
                   " with padding " + std::to_string(geometry.pad[i]) + " on both sides; input " +
                   text_of(inputs[0]->type.shape) + ", filters " + text_of(inputs[1]->type.shape));
}

Type infer(const Nodes& inputs, const Attributes& attributes, Where where) {
    const DType dtype = conv_dtype(inputs, "the input", "the filter tensor", where);
    require_4d(inputs[0], "an input", "[n, channels, height, width]", where);
    require_4d(inputs[1], "filters", "[outputs, channels, height, width]", where);
    const Shape &x = inputs[0]->type.shape, &w = inputs[1]->type.shape;
    require_equal(x[1], w[1], "the channels of input " + text_of(x) + " and filters " + text_of(w), where);
    const ConvGeometry geometry = ConvGeometry::of(attributes);
    Shape shape{x[0], w[0]};
    for (int axis = 0; axis < 2; ++axis) {
        const std::int64_t kernel = kernel_length(inputs[1], axis, where);
        require_room(geometry, axis, inputs, kernel, where);
        shape.push_back(geometry.output_length(axis, x[static_cast<std::size_t>(2 + axis)], kernel));
    }
    return {dtype, shape};
}

std::vector<Equality> equalities(const Node& node) {
    const Shape &x = node.inputs[0]->type.shape, &w = node.inputs[1]->type.shape;
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    std::vector<Equality> r;
    demand_equal(r, x[1], w[1], "the channels of conv2d's input and of its filters");
    for (std::size_t i = 0; i < 2; ++i) {
        const std::int64_t span = geometry.span(static_cast<int>(i), w[2 + i].constant());
        const std::string name = axis_name[i];
        demand_at_most(r, span, x[2 + i] + 2 * geometry.pad[i],
                       "conv2d's kernel, which spans " + std::to_string(span) +
                           ", must fit into the padded " + name + " of its input");
    }
    return r;
}

// Padding counts as zeros that are multiplied: 0 * infinity is NaN there, as in an input padded by hand.
Array evaluate_conv(const Node& node, const std::vector<Array>& inputs) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Dims &xs = inputs[0].shape(), &ws = inputs[1].shape();
    const Dims rs = static_dims(node.type.shape);
    const auto x = inputs[0].view<double>(), w = inputs[1].view<double>();
    Array result(float64, rs);
    auto* out = static_cast<double*>(result.mutable_data());
    for (std::int64_t n = 0; n < rs[0]; ++n)
        for (std::int64_t o = 0; o < rs[1]; ++o)
            for (std::int64_t oy = 0; oy < rs[2]; ++oy)
                for (std::int64_t ox = 0; ox < rs[3]; ++ox) {
                    double sum = 0;
                    for (std::int64_t c = 0; c < ws[1]; ++c)
                        for (std::int64_t ky = 0; ky < ws[2]; ++ky)
                            for (std::int64_t kx = 0; kx < ws[3]; ++kx) {
                                const std::int64_t y = geometry.place(0, oy, ky, ws[2]);
                                const std::int64_t z = geometry.place(1, ox, kx, ws[3]);
                                const bool inside = y >= 0 && y < xs[2] && z >= 0 && z < xs[3];
                                const std::int64_t from = ((n * xs[1] + c) * xs[2] + y) * xs[3] + z;
                                const double value = inside ? x[static_cast<std::size_t>(from)] : 0;
                                const std::int64_t tap = ((o * ws[1] + c) * ws[2] + ky) * ws[3] + kx;
                                sum += value * w[static_cast<std::size_t>(tap)];
                            }
                    *out++ = sum;
                }
    return result;
}

Nest nest(const Node& node) {
    const ConvGeometry geometry = ConvGeometry::of(node.attributes);
    const Shape &x = node.inputs[0]->type.shape, &w = node.inputs[1]->type.shape, &r = node.type.shape;
    Nest nest;
    nest.dtype = nest.accumulator = node.type.dtype;
    nest.combine = Combine::sum;
    const Loop n = make_loop("n", r[0]), o = make_loop("o", r[1]), y = make_loop("y", r[2]),
               z = make_loop("x", r[3]);
    const Loop c = make_loop("c", w[1]), ky = make_loop("ky", w[2]), kx = make_loop("kx", w[3]);
    nest.parallel = {n, o, y, z};
    nest.reduced = {c, ky, kx};
    const Int row = geometry.place(0, y.variable, ky.variable, w[2].constant());
    const Int column = geometry.place(1, z.variable, kx.variable, w[3].constant());
    std::vector<Guard> guards;  // without padding the output's length keeps the kernel inside
    if (geometry.pad[0] > 0) guards.push_back({row, 0, x[2]});
    if (geometry.pad[1] > 0) guards.push_back({column, 0, x[3]});
    const DType t = nest.dtype;
    const Scalar outside = guards.empty() ? nullptr : scalar_constant(t, 0);
    nest.body = scalar_product(scalar_read(t, 0, {n.variable, c.variable, row, column}, guards, outside),
                               scalar_read(t, 1, {o.variable, c.variable, ky.variable, kx.variable}));
    return nest;
}

Nodes gradient(const NodePtr& node, const NodePtr& g) {
    const NodePtr &x = node->inputs[0], &w = node->inputs[1];
    return {make_conv_grad_x(g, w, ConvGeometry::of(node->attributes), x->type.shape[2], x->type.shape[3],
                             node->where),
            make_conv_grad_w(x, g, ConvGeometry::of(node->attributes),
                             {w->type.shape[2].constant(), w->type.shape[3].constant()}, node->where)};
}

}  // namespace

const Op* conv_op() {
    static const Op* op = [] {
        Op r;
        r.name = "conv";
        r.kind = OpKind::reduce;
        r.arity = 2;
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
    ConvGeometry geometry;
    geometry.flip = options.filter_flip;
    geometry.stride = {options.subsample.h, options.subsample.w};
    geometry.dilation = {options.dilation.h, options.dilation.w};
    for (std::size_t i = 0; i < 2; ++i)
        if (geometry.stride[i] < 1 || geometry.dilation[i] < 1)
            throw ShapeError(where, "conv2d: subsample and dilation are at least 1, not " +
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
            throw ShapeError(where,
                             "conv2d: a padding is at least 0, not " + std::to_string(geometry.pad[i]));
    }
    return apply(conv_op(), {input, filters}, geometry.attributes(), where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
