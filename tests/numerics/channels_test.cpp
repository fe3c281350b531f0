// Convolutions whose channels fill vector registers, leave some lanes over, or need several; chains of them
// with what lies in between, against the oracle.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("convolutions with channels of every remainder, of floats and of bytes") {
    constexpr double sums_that_cancel = 1e-4;
    PackedCases cases(tested_device(), sums_that_cancel);
    Random random(11);
    // Input channels, filters, rows and columns of the image.
    const std::vector<std::vector<std::int64_t>> list = {{1, 8, 9, 9},  {3, 10, 8, 11}, {2, 16, 7, 30},
                                                         {9, 17, 6, 7}, {8, 33, 5, 5},  {16, 70, 4, 6}};
    for (const auto& n : list)
        for (const DType dtype : {DType::float32, DType::float64, DType::uint8}) {
            const bool bytes = dtype == DType::uint8;
            const DType real = bytes ? DType::float32 : dtype;
            const Expr x = input(dtype, {3, n[0], n[2], n[3]}, "x"), w = input(real, {n[1], n[0], 3, 3}, "w"),
                       b = input(real, Dims{n[1]}, "b");
            const std::vector<Array> values = {
                random_array(dtype, {3, n[0], n[2], n[3]}, random, bytes ? 0 : -1, bytes ? 255 : 1),
                random_array(real, {n[1], n[0], 3, 3}, random, -1, 1),
                random_array(real, Dims{n[1]}, random, -1, 1)};
            const Expr pixels = bytes ? (cast(x, float32) - 120) / 256 : x;
            const Expr y =
                relu(conv2d(pixels, w, {.border_mode = n[1] % 2 == 0 ? half : valid}) + channel(b));
            const std::string what = fmt::format("{} {} -> {}", bitale::name_of(dtype), n[0], n[1]);
            cases.add(what, {x, w, b}, values, y);
            cases.add(what + ", filters", {x, w, b}, values, grad(weighted(y), w));
            cases.add(what + ", bias", {x, w, b}, values, grad(weighted(y), b));
            if (!bytes) cases.add(what + ", image", {x, w, b}, values, grad(weighted(y), x));
        }
    cases.run();
}

TEST_CASE("chains of convolutions: masks, pooling and factors in between") {
    constexpr double sums_that_cancel = 1e-4;
    PackedCases cases(tested_device(), sums_that_cancel);
    Random random(12);
    for (const std::int64_t middle : {8, 12, 32}) {
        const Dims image{2, 3, 12, 12}, first{middle, 3, 3, 3}, second{10, middle, 3, 3}, mask{2, 10, 4, 4};
        const Expr x = input(float32, image, "x"), v = input(float32, first, "v"),
                   w = input(float32, second, "w"), m = input(float32, mask, "m");
        const std::vector<Array> values = {
            random_array(float32, image, random, -1, 1), random_array(float32, first, random, -0.2, 0.2),
            random_array(float32, second, random, -0.1, 0.1), random_array(float32, mask, random, 0, 2)};
        const Expr h = relu(conv2d(x, v));
        // A factor of each element behind the pooling, as dropout has; the gradient meets it as a copy that
        // its group has computed itself.
        const Expr y = exp(m) * max_pool(relu(conv2d(h, w)), 2);
        const std::string what = fmt::format("{} channels in between", middle);
        const std::vector<Expr> in{x, v, w, m};
        cases.add(what, in, values, y);
        cases.add(what + ", first filters", in, values, grad(weighted(y), v));
        cases.add(what + ", second filters", in, values, grad(weighted(y), w));
        cases.add(what + ", image", in, values, grad(weighted(y), x));
    }
    cases.run();
}

TEST_CASE("chains of convolutions that keep the size: borders of values that lie in memory") {
    constexpr double sums_that_cancel = 1e-4;
    PackedCases cases(tested_device(), sums_that_cancel);
    Random random(13);
    struct Chain {
        std::int64_t channels, first, second;
        Border border;
        Size2 stride;
    };
    for (const Chain& c : {Chain{3, 16, 33, half, 1}, Chain{17, 8, 40, half, 1}, Chain{16, 12, 16, full, 1},
                           Chain{32, 16, 9, half, 2}}) {
        const Dims image{3, c.channels, 9, 11};
        const Expr x = input(float32, image, "x"), u = input(float32, {c.first, c.channels, 3, 3}, "u"),
                   v = input(float32, {c.second, c.first, 3, 3}, "v"),
                   w = input(float32, {10, c.second, 3, 3}, "w");
        const std::vector<Array> values = {
            random_array(float32, image, random, -1, 1),
            random_array(float32, {c.first, c.channels, 3, 3}, random, -0.1, 0.1),
            random_array(float32, {c.second, c.first, 3, 3}, random, -0.1, 0.1),
            random_array(float32, {10, c.second, 3, 3}, random, -0.1, 0.1)};
        const Expr y = tanh(conv2d(x, u, {.border_mode = c.border}));
        const Expr z = tanh(conv2d(y, v, {.border_mode = c.border, .subsample = c.stride}));
        const Expr out = conv2d(z, w, {.border_mode = c.border});
        const std::string what = fmt::format("{} -> {} -> {}", c.channels, c.first, c.second);
        const std::vector<Expr> in{x, u, v, w};
        cases.add(what, in, values, out);
        cases.add(what + ", image", in, values, grad(weighted(out), x));
        cases.add(what + ", first filters", in, values, grad(weighted(out), u));
        cases.add(what + ", second filters", in, values, grad(weighted(out), v));
    }
    cases.run();
}
