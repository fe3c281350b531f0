// Pooling where channels lie side by side: the best element and its position in vector registers, with NaN,
// infinities and ties, against the oracle.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "graph/base/options.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Few different values, so that windows have ties; all kinds of numbers and what is none.
Array awkward(const Dims& shape, std::uint32_t seed, bool with_nan) {
    constexpr float inf = std::numeric_limits<float>::infinity(),
                    nan = std::numeric_limits<float>::quiet_NaN();
    constexpr std::array<float, 12> values{-inf, -2, -0.0F, 0, 0.5F, 0.5F, 3, inf, -inf, -inf, nan, -7};
    Array x(float32, shape);
    auto* to = static_cast<float*>(x.mutable_data());
    for (std::int64_t k = 0; k < x.size(); ++k) {
        seed = seed * 1664525U + 1013904223U;
        const float value = values[(seed >> 16) % values.size()];
        to[k] = !with_nan && value != value ? 1 : value;
    }
    return x;
}

}  // namespace

TEST_CASE("windows over channels that lie side by side") {
    PackedCases cases(tested_device());
    Random random(11);
    struct Geometry {
        Size2 window, stride, pad;
    };
    const Geometry geometries[] = {
        {{2, 2}, {2, 2}, {0, 0}}, {{3, 3}, {2, 2}, {0, 0}}, {{1, 2}, {1, 1}, {0, 0}},
        {{4, 4}, {4, 4}, {0, 0}}, {{3, 2}, {2, 3}, {1, 1}}, {{3, 3}, {2, 2}, {1, 1}},
        {{2, 2}, {2, 2}, {1, 1}}, {{4, 3}, {1, 2}, {3, 0}}, {{2, 5}, {3, 1}, {0, 4}}};
    for (const std::int64_t channels : {1, 3, 4, 5, 10, 16, 17, 40})
        for (const Geometry& g : geometries) {
            const Dims shape{2, 9, 8, channels};
            const std::string name = fmt::format("{} channels, windows of {} x {} every {} x {}", channels,
                                                 g.window.h, g.window.w, g.stride.h, g.stride.w);
            const auto results = [](std::int64_t extent, std::int64_t window, std::int64_t stride,
                                    std::int64_t pad) { return (extent + 2 * pad - window) / stride + 1; };
            const Dims small{2, channels, results(9, g.window.h, g.stride.h, g.pad.h),
                             results(8, g.window.w, g.stride.w, g.pad.w)};
            const Expr weights = constant(random_array(float32, small, random, -1, 1));
            for (const bool with_nan : {false, true}) {
                const Expr x = input(float32, shape, "x");
                const Expr y =
                    max_pool(transpose(x, {0, 3, 1, 2}), g.window, {.stride = g.stride, .pad = g.pad});
                const Array values =
                    awkward(shape, static_cast<std::uint32_t>(channels) * 7 + with_nan, with_nan);
                cases.add(name, {x}, {values}, y);
                cases.add(name + ", gradient", {x}, {values}, grad(sum(y * weights), x));
            }
        }
    cases.run();
}

namespace {

// Of whatever dtype; `least` alone where it is asked for: then every window has its first cell inside as
// winner.
Array few_values(DType dtype, const Dims& shape, Random& random, bool least) {
    if (is_integer(dtype)) return random_array(dtype, shape, random, 0, least ? 0 : 3);
    if (!least) return awkward(shape, static_cast<std::uint32_t>(random.between(0, 1000)), true).as(dtype);
    Array x(float32, shape);
    std::fill_n(static_cast<float*>(x.mutable_data()), x.size(), -std::numeric_limits<float>::infinity());
    return x.as(dtype);
}

}  // namespace

TEST_CASE("windows over channels begin and end inside, whatever the lengths and the dtype") {
    PackedCases cases(tested_device());
    Random random(12);
    for (const DType dtype : {float32, float64, int32, uint8})
        for (const bool known : {true, false})
            for (const bool least : {true, false})
                for (const Dims& shape : std::vector<Dims>{{2, 9, 8, 16}, {1, 2, 3, 5}, {3, 1, 1, 8}}) {
                    const Expr x =
                        known ? input(dtype, shape, "x") : input(dtype, {-1, -1, -1, shape[3]}, "x");
                    const Array values = few_values(dtype, shape, random, least);
                    const Expr channels_first = transpose(x, {0, 3, 1, 2});
                    const Expr y = max_pool(channels_first, 3, {.stride = 2, .pad = {2, 1}});
                    const std::string name = fmt::format("{} {}, known {}, least {}", name_of(dtype),
                                                         text_of(shape), known, least);
                    cases.add(name, {x}, {values}, y);
                    cases.add(name + ", computed", {x}, {values},
                              max_pool(channels_first * 2 + 1, 3, {.stride = 2, .pad = {2, 1}}));
                    cases.add(name + ", least", {x}, {values},
                              -max_pool(-channels_first, {2, 3}, {.pad = 1}));
                    if (!is_float(dtype)) continue;
                    cases.add(name + ", gradient", {x}, {values}, grad(sum(y * y), x));
                    cases.add(name + ", gradient of a computed one", {x}, {values},
                              grad(sum(max_pool(channels_first * 2 + 1, {2, 3}, {.pad = 1})), x));
                }
    cases.run();
}

TEST_CASE("windows with padding behind a convolution") {
    PackedCases cases(tested_device());
    Random random(13);
    for (const Size2 pad : {Size2{1, 1}, Size2{0, 2}, Size2{2, 0}})
        for (const std::int64_t filters : {6, 16}) {
            const Expr x = input(float32, {3, 2, 12, 10}, "x"), f = input(float32, {filters, 2, 3, 3}, "f"),
                       b = input(float32, Dims{filters}, "b");
            const Expr y = max_pool(relu(conv2d(x, f, {.border_mode = half}) + channel(b)), 3,
                                    {.stride = 2, .pad = pad});
            const std::vector<Array> values = {
                random_array(int8, {3, 2, 12, 10}, random, -2, 2).as(float32),
                random_array(int8, {filters, 2, 3, 3}, random, -1, 1).as(float32),
                random_array(int8, {filters}, random, -2, 2).as(float32)};
            const std::string name = fmt::format("{} filters, padding {} x {}", filters, pad.h, pad.w);
            if (std::string(tested_device()) == "cpu" && filters == 16) {
                Options o = options();
                o.mode = Options::Mode::fast_run;  // the other one has no room for a window in registers
                const ScopedOptions scope(o);
                const Function pooled = function({x, f, b}, y, {.device = tested_device()});
                INFO(name << pooled.report(Detail::complete));
                CHECK(std::any_of(pooled.kernels().begin(), pooled.kernels().end(),
                                  [](const auto& k) { return k.source.find("b_best") != k.source.npos; }));
            }
            cases.add(name, {x, f, b}, values, y);
            cases.add(name + ", gradient of filters", {x, f, b}, values, grad(sum(sqr(y)), f));
            cases.add(name + ", gradient of images", {x, f, b}, values, grad(sum(sqr(y)), x));
        }
    cases.run();
}

TEST_CASE("windows of interleaved channels, normalised by a number for each channel") {
    PackedCases cases(tested_device(), 1e-5);
    Random random(21);
    for (const std::int64_t channels : {1, 2, 3, 5, 7})
        for (const DType dtype : {uint8, float32, float64})
            for (const std::int64_t size : {2, 3}) {
                const std::int64_t height = 4 * size, width = 23 * size;
                const bool bytes = dtype == uint8;
                const DType real = bytes ? DType::float32 : dtype;
                const Dims shape{2, height, width, channels};
                const Expr x = input(dtype, shape, "x"), m = input(real, Dims{channels}, "m"),
                           s = input(real, Dims{channels}, "s"), f = cast(x, real) / 255;
                const std::vector<Array> values{
                    random_array(dtype, shape, random, bytes ? 0 : -1, bytes ? 255 : 1),
                    random_array(real, Dims{channels}, random, 0, 1),
                    random_array(real, Dims{channels}, random, 0.5, 1)};
                const Expr planes = (transpose(f, {0, 3, 1, 2}) - channel(m)) / channel(s);
                const Expr split = reshape(planes, {2, channels, height / size, size, width / size, size});
                Expr corners = zeros({}, real);
                for (int i = 0; i < size; ++i)
                    for (int j = 0; j < size; ++j)
                        corners = corners + f[{colon, Slice{.start = Expr(i), .step = size},
                                               Slice{.start = Expr(j), .step = size}}];
                const std::string what =
                    fmt::format("{} of {}, windows of {}", channels, name_of(dtype), size);
                cases.add(what + ", means", {x, m, s}, values, flip(mean(split, {3, 5}), 3));
                cases.add(what + ", maxima", {x, m, s}, values, max(split, {3, 5}));
                cases.add(what + ", slices", {x, m, s}, values, flip((corners - m) / s, 2));
            }
    cases.run();
}
