// conv2d: every mode against the definition, index maps, gradients of any order, messages.
#include "ops/linear/conv.h"

#include "ops/linear/conv_gradients.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

const std::vector<ConvOptions> all_modes = {
    {},
    {.filter_flip = false},
    {.border_mode = full},
    {.border_mode = half, .filter_flip = false},
    {.border_mode = half},
    {.border_mode = 2},
    {.border_mode = {1, 0}, .subsample = {2, 1}},
    {.subsample = {2, 3}},
    {.border_mode = full, .subsample = {3, 2}, .filter_flip = false},
    {.dilation = {2, 1}},
    {.border_mode = half, .subsample = {2, 2}, .dilation = {1, 2}},
    {.border_mode = {3, 1}, .subsample = {2, 1}, .dilation = {2, 2}, .filter_flip = false},
};

struct ConvShapes {
    Dims x, w;
};
const std::vector<ConvShapes> all_conv_shapes = {{{2, 3, 6, 7}, {4, 3, 3, 2}},
                                                 {{1, 1, 5, 5}, {1, 1, 1, 1}},
                                                 {{2, 2, 7, 5}, {3, 2, 2, 3}},
                                                 {{3, 1, 5, 8}, {2, 1, 3, 3}}};

// The definition, written the other way round from the library: the input is padded in memory, the filter is
// turned in memory, then windows are summed.
Array by_definition(const Array& x, const Array& w, const ConvOptions& options) {
    const Dims &xs = x.shape(), &ws = w.shape();
    const std::int64_t dy = options.dilation.h, dx = options.dilation.w;
    const std::int64_t span_y = (ws[2] - 1) * dy + 1, span_x = (ws[3] - 1) * dx + 1;
    std::int64_t py = options.border_mode.h, px = options.border_mode.w;
    if (options.border_mode.kind == Border::Kind::full) py = span_y - 1, px = span_x - 1;
    if (options.border_mode.kind == Border::Kind::half) py = span_y / 2, px = span_x / 2;
    const std::int64_t height = xs[2] + 2 * py, width = xs[3] + 2 * px;
    std::vector<double> padded(static_cast<std::size_t>(xs[0] * xs[1] * height * width), 0.0);
    for (std::int64_t i = 0; i < x.size(); ++i) {
        const std::int64_t column = i % xs[3], row = i / xs[3] % xs[2], image = i / (xs[3] * xs[2]);
        padded[static_cast<std::size_t>((image * height + row + py) * width + column + px)] = x.at(i);
    }
    const std::int64_t oh = (height - span_y) / options.subsample.h + 1,
                       ow = (width - span_x) / options.subsample.w + 1;
    std::vector<double> r;
    for (std::int64_t n = 0; n < xs[0]; ++n)
        for (std::int64_t o = 0; o < ws[0]; ++o)
            for (std::int64_t i = 0; i < oh; ++i)
                for (std::int64_t j = 0; j < ow; ++j) {
                    double sum = 0;
                    for (std::int64_t c = 0; c < ws[1]; ++c)
                        for (std::int64_t a = 0; a < ws[2]; ++a)
                            for (std::int64_t b = 0; b < ws[3]; ++b) {
                                const std::int64_t fa = options.filter_flip ? ws[2] - 1 - a : a;
                                const std::int64_t fb = options.filter_flip ? ws[3] - 1 - b : b;
                                const std::int64_t row = i * options.subsample.h + a * dy;
                                const std::int64_t column = j * options.subsample.w + b * dx;
                                sum += padded[static_cast<std::size_t>(
                                           ((n * xs[1] + c) * height + row) * width + column)] *
                                       w.at(((o * ws[1] + c) * ws[2] + fa) * ws[3] + fb);
                            }
                    r.push_back(sum);
                }
    return Array(r, {xs[0], ws[0], oh, ow});
}

Expr filters(const Dims& shape) { return input(float32, shape, "w"); }

// The gradients' index maps, with the lengths of images as symbols.
void require_gradient_maps(const Expr& y, const Array& x, const Array& w) {
    const NodePtr& conv = y.node();
    const Array value =
        oracle(make_node(conv->op, {constant(x).node(), constant(w).node()}, conv->attributes), {x, w});
    const Array g = sample(float32, value.shape(), 3);
    const auto geometry = ConvGeometry::of(conv->attributes);
    const Int n = Int::symbol("n", {0, 1000});
    const NodePtr images = make_input({float32, {n, x.shape()[1], x.shape()[2], x.shape()[3]}}, "x", {});
    const NodePtr filters = make_input({float32, shape_of(w.shape())}, "w", {});
    const NodePtr gradient =
        make_input({float32, {n, value.shape()[1], value.shape()[2], value.shape()[3]}}, "g", {});
    require_nest_matches(make_conv_grad_x(gradient, filters, geometry, x.shape()[2], x.shape()[3], {}),
                         {g, w});
    require_nest_matches(make_conv_grad_w(images, gradient, geometry, {w.shape()[2], w.shape()[3]}, {}),
                         {x, g});
}

}  // namespace

TEST_CASE("conv2d is its definition in every mode, and so is its index map") {
    for (const ConvOptions& options : all_modes)
        for (const ConvShapes& shapes : all_conv_shapes) {
            const Array x = sample(float32, shapes.x, 1), w = sample(float32, shapes.w, 2);
            const Expr y = conv2d(tensor4("x"), filters(shapes.w), options);
            const Array value = require_nest_matches(y.node(), {x, w});
            require_same(value, by_definition(x, w, options));
            require_gradient_maps(y, x, w);
        }
}

TEST_CASE("the result's lengths are Theano's") {
    const auto shape = [](ConvOptions options) {
        return conv2d(input(float32, {-1, 3, 12, 9}, "x"), filters({8, 3, 4, 3}), options).shape_text();
    };
    CHECK_THAT(shape({}), ContainsSubstring(", 8, 9, 7]"));
    CHECK_THAT(shape({.border_mode = full}), ContainsSubstring(", 8, 15, 11]"));
    CHECK_THAT(shape({.border_mode = half}), ContainsSubstring(", 8, 13, 9]"));  // even kernels grow by one
    CHECK_THAT(shape({.border_mode = {2, 0}, .subsample = {2, 2}, .dilation = 1}),
               ContainsSubstring(", 8, 7, 4]"));
}

TEST_CASE("gradients of conv2d, first and second order") {
    for (std::size_t mode = 0; mode < all_modes.size(); ++mode) {
        const ConvShapes& shapes = all_conv_shapes[mode % 2 ? 2 : 0];
        const Array x = sample(float32, {1, shapes.x[1], 4, 5}, 4), w = sample(float32, shapes.w, 5);
        if (all_modes[mode].dilation.h * (shapes.w[2] - 1) >= 4 + 2 * all_modes[mode].border_mode.h) continue;
        require_gradient([&](const std::vector<Expr>& v) { return conv2d(v[0], v[1], all_modes[mode]); },
                         {x, w});
    }
    for (const ConvOptions& options : {all_modes[0], all_modes[6], all_modes[10]}) {
        const Array x = sample(float32, {1, 2, 5, 4}, 6), w = sample(float32, {2, 2, 3, 2}, 7);
        const auto gradients = [&](const std::vector<Expr>& v, std::size_t k) {
            const Expr y = conv2d(v[0], v[1], options);
            return grad(sum(y * y), v[k]);
        };
        require_gradient([&](const std::vector<Expr>& v) { return gradients(v, 0); }, {x, w});
        require_gradient([&](const std::vector<Expr>& v) { return gradients(v, 1); }, {x, w});
    }
}

TEST_CASE("float64 stays float64") {
    const Expr y = conv2d(input(float64, {1, 1, 3, 3}, "x"), input(float64, {1, 1, 2, 2}, "w"));
    CHECK(y.dtype() == float64);
}

TEST_CASE("bytes in a convolution are an error that names both operands and the cast") {
    const Expr x = input(int8, 4, "x");
    const std::string line_x = std::to_string(__LINE__ - 1);
    const Expr w = filters({2, 1, 3, 3});
    const std::string message = message_of<TypeError>([&] { conv2d(x, w); });
    CHECK_THAT(message, ContainsSubstring("\"x\" (int8 ["));
    CHECK_THAT(message, ContainsSubstring("at conv_test.cpp:" + line_x));
    CHECK_THAT(message, ContainsSubstring("\"w\" (float32 [2, 1, 3, 3]) at conv_test.cpp:"));
    CHECK_THAT(message, Catch::Matchers::EndsWith("; write cast(x, float32)"));
    const std::string halves = message_of<TypeError>([] {
        conv2d(input(float16, 4, "x"), input(float16, Dims{2, 1, 3, 3}, "w"));
    });
    CHECK_THAT(halves, Catch::Matchers::EndsWith("; write cast(x, float32) and cast(w, float32)"));
}

TEST_CASE("impossible convolutions name their numbers") {
    const auto message = [](const Expr& x, const Expr& w, ConvOptions options = {}) {
        return message_of<ShapeError>([&] { conv2d(x, w, options); });
    };
    const Expr x = input(float32, {-1, 3, 4, 9}, "x");
    CHECK_THAT(
        message(x, filters({8, 3, 3, 3}), {.dilation = 2}),
        ContainsSubstring(
            "the height of a filter, 5 with dilation, is more than that of the images, 4; .border_mode "
            "= half pads them"));
    CHECK_THAT(
        message(x, filters({8, 3, 7, 3}), {.border_mode = 1}),
        ContainsSubstring("the height of a filter, 7, is more than that of the images, 6 with padding 1"));
    CHECK_THAT(message(x, filters({8, 2, 3, 3})),
               ContainsSubstring("axis 1 of \"x\" has length 3 and axis 1 of \"w\" has length 2") &&
                   Catch::Matchers::EndsWith("filters [out, channels, height, width]"));
    CHECK_THAT(message(input(float32, {-1, 28, 28, 3}, "x"), filters({8, 3, 3, 3})),
               ContainsSubstring("has length 28 and") &&
                   ContainsSubstring("; transpose(x, {0, 3, 1, 2}) makes such images of [n, h, w, c]"));
    CHECK_THAT(message(input(float32, 3, "x"), filters({8, 3, 3, 3})), ContainsSubstring("of rank 4"));
    CHECK_THAT(message(x, tensor4("w")), ContainsSubstring("known when the graph is built"));
    CHECK_THAT(message(x, filters({8, 3, 3, 3}), {.subsample = 0}),
               ContainsSubstring("at least 1, but are 0 and 1"));
    CHECK_THAT(message(x, filters({8, 3, 3, 3}), {.border_mode = -1}),
               ContainsSubstring("at least 0, but is -1"));
}

TEST_CASE("what only a call can know becomes an equality") {
    const Expr y = conv2d(tensor4("x"), filters({2, 3, 5, 5}));
    const std::vector<Equality> equalities = y.node()->op->equalities(*y.node());
    REQUIRE(equalities.size() == 3);
    CHECK_THAT(equalities[0].what, ContainsSubstring("channels"));
    CHECK_THAT(equalities[1].what,
               ContainsSubstring("the height of a filter, 5, is more than that of the images, "));
    const auto room = [&](std::int64_t height) {
        const std::uint64_t id = y.node()->inputs[0]->type.shape[2].symbol_id();
        return evaluate(equalities[1].a, {{id, height}}) == evaluate(equalities[1].b, {{id, height}});
    };
    CHECK(room(5));
    CHECK_FALSE(room(4));
    CHECK(y.node()
              ->op->equalities(*conv2d(input(float32, {-1, 3, 9, 9}, "x"), filters({2, 3, 5, 5})).node())
              .empty());
}
