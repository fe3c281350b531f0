// Generated CPU code of convolution, pooling and their gradients against the oracle.
#include <fmt/format.h>

#include <limits>

#include "tests/numerics/shorthands.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct ImageAndFilters {
    Dims image, kernel;
};

std::string name_of(const Border& b) {
    switch (b.kind) {
        case Border::Kind::valid: return "valid";
        case Border::Kind::full: return "full";
        case Border::Kind::half: return "half";
        default: return fmt::format("pad {} {}", b.h, b.w);
    }
}

void add_convolution(PackedCases& cases, Random& random, DType dtype, const ImageAndFilters& sizes,
                     const ConvOptions& options, bool symbolic) {
    const Expr x = symbolic ? input(dtype, 4, "x") : input(dtype, sizes.image, "x"),
               w = input(dtype, sizes.kernel, "w");
    const std::vector<Array> values = {random_array(dtype, sizes.image, random, -1, 1),
                                       random_array(dtype, sizes.kernel, random, -1, 1)};
    const Expr y = conv2d(x, w, options);
    const std::string what =
        fmt::format("{} {} {} {}, {}, stride {} {}, dilation {} {}{}", bitale::name_of(dtype),
                    text_of(sizes.image), text_of(sizes.kernel), symbolic ? "symbolic" : "known",
                    name_of(options.border_mode), options.subsample.h, options.subsample.w,
                    options.dilation.h, options.dilation.w, options.filter_flip ? ", flipped" : "");
    cases.add(what, {x, w}, values, y);
    cases.add(what + ", gradient of the image", {x, w}, values, grad(weighted(y), x));
    cases.add(what + ", gradient of the filters", {x, w}, values, grad(weighted(y), w));
}

}  // namespace

TEST_CASE("convolutions and their gradients: borders, strides, dilations, flips") {
    PackedCases cases(tested_device());
    Random random(1);
    const std::vector<Border> borders = {valid, full, half, Border(1), Border(2, 0)};
    const std::vector<Size2> strides = {1, 2, Size2(3, 1), Size2(1, 2)};
    const std::vector<Size2> dilations = {1, 2, Size2(1, 3)};
    const std::vector<Dims> kernels = {{2, 3, 3, 3}, {4, 3, 1, 1}, {1, 3, 2, 3}, {5, 3, 5, 1}, {3, 3, 2, 2}};
    // Every border with every stride; dilations, flips, kernels and dtypes in turn.
    std::size_t turn = 0;
    for (const Border& border : borders)
        for (const Size2& stride : strides) {
            const ConvOptions options{.border_mode = border,
                                      .subsample = stride,
                                      .dilation = dilations[turn % dilations.size()],
                                      .filter_flip = turn % 2 == 0};
            add_convolution(cases, random, turn % 4 == 3 ? float64 : float32,
                            {{2, 3, 9, 10}, kernels[turn % kernels.size()]}, options, turn % 3 == 0);
            ++turn;
        }
    cases.run();
}

TEST_CASE("convolutions of awkward sizes") {
    PackedCases cases(tested_device(), 1e-4);  // sums of 153 products that cancel
    Random random(2);
    const std::vector<std::pair<ImageAndFilters, Border>> list = {
        {{{1, 1, 1, 1}, {1, 1, 1, 1}}, valid},    {{{0, 2, 5, 5}, {3, 2, 3, 3}}, half},
        {{{3, 1, 3, 3}, {2, 1, 3, 3}}, valid},    {{{1, 1, 2, 2}, {1, 1, 3, 3}}, full},
        {{{1, 17, 5, 33}, {19, 17, 3, 3}}, half}, {{{5, 2, 1, 40}, {3, 2, 1, 7}}, valid},
        {{{2, 2, 40, 1}, {3, 2, 7, 1}}, half},    {{{1, 1, 28, 28}, {10, 1, 3, 3}}, half},
    };
    bool symbolic = false;
    for (const auto& [sizes, border] : list) {
        add_convolution(cases, random, float32, sizes, {.border_mode = border}, symbolic);
        symbolic = !symbolic;
    }
    cases.run();
}

TEST_CASE("filters larger than the caches, also those that need no copy") {
    PackedCases cases(tested_device(), 1e-4);
    Random random(8);
    // Stored with their channels side by side, and used in the order that convolutions want.
    const Dims image{1, 64, 5, 5}, turned{64, 3, 3, 128};
    const Expr x = input(float32, image, "x"), w = input(float32, turned, "w");
    const Expr y = conv2d(x, transpose(w, {3, 0, 1, 2}));
    const std::vector<Array> values = {random_array(float32, image, random, -1, 1),
                                       random_array(float32, turned, random, -1, 1)};
    cases.add("turned", {x, w}, values, y);
    cases.add("turned, gradient of the image", {x, w}, values, grad(weighted(y), x));
    cases.add("turned, gradient of the filters", {x, w}, values, grad(weighted(y), w));
    for (const bool symbolic : {false, true}) {
        add_convolution(cases, random, float32, {{2, 512, 4, 4}, {256, 512, 1, 1}}, {}, symbolic);
        add_convolution(cases, random, float32, {{3, 256, 5, 4}, {128, 256, 3, 3}}, {.border_mode = half},
                        symbolic);
        add_convolution(cases, random, float64, {{2, 256, 3, 3}, {256, 256, 1, 1}}, {.subsample = 2},
                        symbolic);
    }
    cases.run();
}

// Each remainder of rows and columns by the stride is a sum of its own, over the taps that meet it.
TEST_CASE("gradients of images behind strided convolutions, and behind filters as large as they are") {
    PackedCases cases(tested_device(), 1e-4);
    Random random(6);
    struct Strided {
        Dims image, kernel;
        Border border;
        Size2 stride, dilation = 1;
        DType dtype = float32;
    };
    const std::vector<Strided> list = {
        {{2, 16, 9, 11}, {12, 16, 3, 3}, 1, 2},
        {{2, 33, 10, 7}, {9, 33, 3, 3}, half, 3, 2},
        {{3, 8, 12, 12}, {16, 8, 5, 5}, valid, 2, 2},
        {{1, 9, 13, 16}, {40, 9, 5, 4}, full, Size2(3, 2), Size2(1, 3), float64},
        {{2, 3, 21, 20}, {24, 3, 7, 7}, 3, 2},
        {{2, 16, 8, 8}, {8, 16, 1, 1}, valid, 2},   // most places have no gradient
        {{2, 17, 11, 9}, {8, 17, 2, 2}, valid, 5},  // as do those between windows that lie apart
        {{2, 8, 2, 3}, {8, 8, 1, 1}, valid, 4},     // an image smaller than the stride
        {{2, 8, 3, 1}, {9, 8, 2, 1}, Border(1, 0), Size2(6, 3)},
        {{2, 4, 16, 24}, {12, 4, 8, 8}, valid, 8},  // windows side by side: one tap for each place
        {{2, 5, 19, 18}, {12, 5, 8, 8}, Border(4, 1), 8},
        {{0, 8, 9, 9}, {8, 8, 3, 3}, half, 2},
        {{2, 8, 9, 9}, {1, 8, 3, 3}, half, 2},
        {{1, 1, 4, 4}, {1, 1, 3, 3}, half, 2},
        {{1, 3, 6, 6}, {120, 3, 5, 5}, half, 2},  // few results of long sums
        {{1, 2, 5, 40}, {30, 2, 1, 20}, half, Size2(1, 4)},
        // One output along an axis: each place meets one tap, or none.
        {{2, 5, 9, 11}, {7, 5, 9, 4}, valid, 1},
        {{3, 6, 7, 7}, {20, 6, 7, 7}, valid, 1},
        {{2, 3, 6, 9}, {17, 3, 5, 9}, valid, 2},
        {{2, 3, 4, 5}, {8, 3, 6, 7}, 1, 3},
        {{2, 3, 5, 6}, {8, 3, 3, 2}, valid, 1, Size2(2, 3)},
    };
    for (const Strided& s : list)
        for (const bool symbolic : {false, true}) {
            Dims known = s.image;
            known[0] = -1;
            add_convolution(cases, random, s.dtype, {s.image, s.kernel},
                            {.border_mode = s.border, .subsample = s.stride, .dilation = s.dilation},
                            symbolic);
            if (symbolic) continue;
            // Of so many images as come, beside another gradient of theirs, through what is between.
            const Expr x = input(s.dtype, known, "x"), w = input(s.dtype, s.kernel, "w");
            const Expr y = relu(conv2d(tanh(x), w,
                                       {.border_mode = s.border,
                                        .subsample = s.stride,
                                        .dilation = s.dilation,
                                        .filter_flip = false}));
            cases.add(text_of(s.image) + " among others", {x, w},
                      {random_array(s.dtype, s.image, random, -1, 1),
                       random_array(s.dtype, s.kernel, random, -1, 1)},
                      grad(weighted(y) + sum(sqr(x)), x));
        }
    cases.run();
}

// Filters of one row give most rows of an image no gradient, by a stride that has more remainders than there
// are phases: these rows are zero, whatever their memory had before.
TEST_CASE("rows between windows of unknown images have no gradient") {
    for (const std::int64_t channels : {2, 40}) {
        const Dims image{1, 1, 75, 20}, filters{channels, 1, 1, 3};
        Random random(12);
        const Array one = random_array(float32, image, random, -1, 1),
                    taps = random_array(float32, filters, random, -1, 1);
        const Expr x = tensor4("x"), w = input(float32, filters, "w");
        const Expr y = conv2d(x, w, {.subsample = Size2(70, 1)});
        const FunctionOptions options{.device = tested_device()};
        Function f = function({x, w}, {grad(sum(y * y), x)}, options);
        // Memory of this size is used again.
        { const Array before(std::vector<float>(75 * 20, 7e20F), image); }
        const Array got = f(one, taps)[0];
        for (std::int64_t row = 0; row < 75; ++row)
            for (std::int64_t column = 0; column < 20; ++column) {
                const auto at = [&](std::int64_t c) { return row * 20 + c; };
                double expected = 0;
                for (std::int64_t c = 0; row % 70 == 0 && c < channels; ++c)
                    for (std::int64_t first = std::max<std::int64_t>(0, column - 2);
                         first <= std::min<std::int64_t>(column, 17); ++first) {
                        double sum = 0;
                        for (std::int64_t k = 0; k < 3; ++k)
                            sum += one.at(at(first + k)) * taps.at(c * 3 + 2 - k);
                        expected += 2 * sum * taps.at(c * 3 + 2 - (column - first));
                    }
                INFO(channels << " channels, row " << row << ", column " << column);
                REQUIRE(got.at(at(column)) == Approx(expected).epsilon(1e-4).margin(1e-4));
            }
    }
}

// As many as fill tiles of a GPU, phase by phase.
TEST_CASE("gradients of larger images behind strided convolutions") {
    PackedCases cases(tested_device(), 1e-4);
    Random random(7);
    for (const int kernel : {1, 2, 3}) {
        const Dims image{2, 33, 16, 17}, filters{64, 33, kernel, kernel}, small{2, 64, 8, 8 + kernel % 2};
        const Expr x = input(float32, image, "x"), w = input(float32, filters, "w"),
                   g = input(float32, small, "g");
        const Expr y = conv2d(x, w, {.border_mode = kernel / 3, .subsample = 2});
        cases.add("kernel " + std::to_string(kernel), {x, w, g},
                  {random_array(float32, image, random, -1, 1), random_array(float32, filters, random, -1, 1),
                   random_array(float32, small, random, -1, 1)},
                  grad(sum(y * g), x));
    }
    cases.run();
}

// Taps that meet no place of the gradient are not multiplied by its zeros.
TEST_CASE("infinite filters leave the gradient of places that they do not meet at zero") {
    const Expr x = input(float32, {1, 8, 6, 6}, "x"), w = input(float32, {8, 8, 2, 1}, "w");
    const Expr cost = sum(conv2d(x, w, {.subsample = Size2(3, 2)}));
    const float infinity = std::numeric_limits<float>::infinity();
    const Array filters(std::vector<float>(128, infinity), {8, 8, 2, 1});
    const FunctionOptions options{.device = tested_device(), .on_unused_input = OnUnused::ignore};
    Function f = function({x, w}, {grad(cost, x)}, options);
    const Array got = f(Array(float32, {1, 8, 6, 6}), filters);
    const auto values = got.view<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t row = i / 6 % 6, column = i % 6;
        CHECK(values[i] == (row % 3 < 2 && column % 2 == 0 ? infinity : 0));
    }
}

TEST_CASE("pooling and its gradient: windows, strides, padding, overlap") {
    PackedCases cases(tested_device());
    Random random(3);
    struct Pooling {
        Size2 window;
        PoolOptions options;
    };
    const std::vector<Pooling> list = {{2, {}},
                                       {3, {.stride = Size2(1)}},
                                       {3, {.stride = Size2(2), .pad = Size2(1)}},
                                       {Size2(2, 3), {.stride = Size2(1, 2), .pad = Size2(0, 2)}},
                                       {Size2(1, 4), {.stride = Size2(3, 1)}},
                                       {1, {.stride = Size2(2)}},
                                       {Size2(5, 5), {.stride = Size2(5), .pad = Size2(4)}}};
    const std::vector<Dims> shapes = {{2, 3, 8, 9}, {1, 1, 5, 5}, {0, 2, 6, 6}, {3, 17, 5}};
    std::size_t turn = 0;
    for (const Pooling& p : list)
        for (const Dims& shape : shapes) {
            const std::string what =
                fmt::format("{}, window {} {}, stride {} {}, pad {} {}", text_of(shape), p.window.h,
                            p.window.w, p.options.stride.value_or(p.window).h,
                            p.options.stride.value_or(p.window).w, p.options.pad.h, p.options.pad.w);
            const DType dtype = turn % 3 == 2 ? float64 : float32;
            const bool symbolic = turn++ % 2 == 1;
            const Expr x =
                symbolic ? input(dtype, static_cast<int>(shape.size()), "x") : input(dtype, shape, "x");
            // Small whole numbers: many maxima are shared, the first wins.
            const Array values = random_array(int32, shape, random, -2, 2).as(dtype);
            const Expr y = max_pool(x, p.window, p.options);
            cases.add(what, {x}, {values}, y);
            cases.add(what + ", gradient", {x}, {values}, grad(weighted(y), x));
        }
    for (const DType dtype : {int8, int16, int32, int64, uint8, uint16, uint32, uint64}) {
        const Expr x = input(dtype, 4, "x");
        cases.add(std::string(bitale::name_of(dtype)), {x}, {special_array(dtype, {2, 1, 7, 6}, random, 0)},
                  max_pool(x, 2, {.stride = Size2(1, 2), .pad = Size2(1, 0)}));
    }
    cases.run();
}

// Gradients of filters behind max-pooling, of shapes for which they run through the winners.
TEST_CASE("filters learn through the winners of pooling") {
    PackedCases cases(tested_device(), 2e-4);
    Random random(5);
    struct Layer {
        Dims image, kernel;
        ConvOptions conv;
        Size2 window;
        PoolOptions pool;
        DType dtype = float32;
        bool symbolic = false;
    };
    const std::vector<Layer> list = {
        {{5, 16, 12, 12}, {6, 16, 3, 3}, {}, 2, {}},
        {{4, 16, 12, 11}, {3, 16, 3, 3}, {.border_mode = half}, 2, {}, float32, true},
        {{3, 3, 20, 20}, {4, 3, 5, 5}, {}, 4, {}},
        {{3, 3, 19, 21}, {5, 3, 5, 5}, {.border_mode = half, .filter_flip = false}, 4, {.stride = 2}},
        {{2, 40, 9, 9}, {2, 40, 3, 3}, {.filter_flip = false}, 3, {.stride = 2, .pad = 1}},
        {{3, 12, 13, 15}, {4, 12, 3, 2}, {.subsample = Size2(2, 1)}, 3, {.stride = 2}},
        {{2, 9, 14, 12}, {3, 9, 3, 3}, {.border_mode = Border(2, 1), .dilation = 2}, Size2(2, 3), {}},
        {{2, 10, 12, 12}, {3, 10, 3, 3}, {.border_mode = full}, 4, {}, float64},
        {{3, 2, 18, 18}, {3, 2, 3, 5}, {.border_mode = half}, 4, {}, float64},
        {{1, 8, 10, 10}, {2, 8, 3, 3}, {}, 2, {}},
        {{2, 17, 68, 20}, {2, 17, 3, 3}, {}, 2, {}},  // bands of windows
        {{6, 1, 16, 40}, {3, 1, 2, 7}, {}, 4, {}},
    };
    for (std::size_t k = 0; k < list.size(); ++k) {
        const Layer& l = list[k];
        const Expr x = l.symbolic ? input(l.dtype, 4, "x") : input(l.dtype, l.image, "x"),
                   w = input(l.dtype, l.kernel, "w"), b = input(l.dtype, Dims{l.kernel[0]}, "b");
        const std::vector<Expr> inputs = {x, w, b};
        const std::vector<Array> values = {random_array(l.dtype, l.image, random, -1, 1),
                                           random_array(l.dtype, l.kernel, random, -1, 1),
                                           random_array(l.dtype, {l.kernel[0]}, random, -1, 1)};
        // Scaled where they are read: then they are copied, padding included, and else read as they lie.
        const Expr images = k % 3 == 2 ? x : x / 3;
        const Expr y = relu(max_pool(conv2d(images, w, l.conv), l.window, l.pool) + channel(b));
        const std::string name = text_of(l.image) + " " + text_of(l.kernel);
        cases.add(name, inputs, values, grad(weighted(y), w));
        cases.add(name + ", bias", inputs, values, grad(weighted(y), b));
    }
    cases.run();
}

TEST_CASE("networks of convolution, pooling and what follows them") {
    PackedCases cases(tested_device(), 1e-4);
    Random random(4);
    for (const Dims& image : {Dims{3, 1, 12, 12}, Dims{1, 2, 9, 7}}) {
        const Expr bytes = input(uint8, 4, "bytes"), w = input(float32, {4, image[1], 3, 3}, "w"),
                   b = vector("b"), v = input(float32, {3, 4, 3, 3}, "v");
        const std::vector<Expr> inputs = {bytes, w, b, v};
        const std::vector<Array> values = {random_array(uint8, image, random, 0, 255),
                                           random_array(float32, {4, image[1], 3, 3}, random, -1, 1),
                                           random_array(float32, {4}, random, -1, 1),
                                           random_array(float32, {3, 4, 3, 3}, random, -1, 1)};
        const Expr x = cast(bytes, float32);
        const Expr h = relu(max_pool(conv2d((x - mean(x)) / 128, w, {.border_mode = half}), 2) + channel(b));
        const Expr y = conv2d(tanh(h), v, {.border_mode = full, .subsample = 2});
        const Expr z =
            max_pool(relu(conv2d(x / 256, w) + channel(b)), 3, {.stride = Size2(2), .pad = Size2(1)});
        const std::string name = text_of(image);
        cases.add(name + " first layer", inputs, values, h);
        cases.add(name + " second layer", inputs, values, y);
        cases.add(name + " overlapping", inputs, values, z);
        for (const Expr& wrt : {w, b, v}) {
            if (!same(wrt, v)) cases.add(name + " gradient", inputs, values, grad(weighted(z), wrt));
            cases.add(name + " gradient of both layers", inputs, values, grad(weighted(y), wrt));
        }
    }
    // Channels that only a call can compare, and images that are computed and padded in more than one way.
    for (const Dims& image : {Dims{2, 3, 6, 12}, Dims{3, 9, 5, 14}}) {
        const Expr x = input(float32, image, "x"), w = input(float32, {-1, -1, 2, 3}, "w");
        const std::vector<Array> values = {random_array(float32, image, random, -1, 1),
                                           random_array(float32, {4, image[1] + 1, 2, 3}, random, -1, 1)};
        const Expr h = pad(exp(x), {{0, 1}, {1, 0}, {0, 0}, {2, 1}}, 1);
        const Expr y = conv2d(h, w, {.border_mode = Border(0, 1)});
        cases.add(text_of(image) + " padded", {x, w}, values, y);
        cases.add(text_of(image) + " padded, gradient", {x, w}, values, grad(weighted(y), x));
        cases.add(text_of(image) + " padded, gradient of filters", {x, w}, values, grad(weighted(y), w));
    }
    cases.run();
}
