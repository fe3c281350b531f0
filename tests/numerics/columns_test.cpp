// Statistics of columns and what is computed with them for each element: sums over the first axis in whole
// blocks of columns and a last one, of known and unknown lengths, and divisions by numbers of rows.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bitale/bitale.h"
#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Function statistics(const Dims& lengths, const std::string& device) {
    const Expr x = input(float32, lengths, "x");
    const Expr m = mean(x, {0}, {.keepdims = true}), centred = x - m;
    const Expr v = mean(sqr(centred), {0}, {.keepdims = true});
    return function({x},
                    {sum(x, {0}), max(x, {0}), argmin(x, {0}), m, v, centred / sqrt(v + 1e-5F),
                     x / (cast(x.length(0), float32) + 0.5F)},
                    {.device = device});
}

void check_statistics(const std::vector<Array>& got, const Array& x) {
    const std::int64_t rows = x.shape()[0], columns = x.shape()[1];
    for (std::int64_t j = 0; j < columns; ++j) {
        double total = 0, squares = 0, most = -1e9, least = 1e9;
        std::int64_t place = 0;
        for (std::int64_t i = 0; i < rows; ++i) {
            const double value = x.at(i * columns + j);
            total += value;
            most = std::max(most, value);
            if (value < least) least = value, place = i;
        }
        const double m = total / static_cast<double>(rows);
        for (std::int64_t i = 0; i < rows; ++i) squares += std::pow(x.at(i * columns + j) - m, 2);
        const double v = squares / static_cast<double>(rows);
        INFO("column " << j);
        REQUIRE(got[0].at(j) == Approx(total).epsilon(1e-5).margin(1e-3));
        REQUIRE(got[1].at(j) == most);
        REQUIRE(got[2].at(j) == static_cast<double>(place));
        REQUIRE(got[3].at(j) == Approx(m).margin(1e-5));
        REQUIRE(got[4].at(j) == Approx(v).epsilon(1e-4));
        for (std::int64_t i = 0; i < rows; ++i) {
            const double value = x.at(i * columns + j);
            REQUIRE(got[5].at(i * columns + j) == Approx((value - m) / std::sqrt(v + 1e-5)).margin(1e-3));
            REQUIRE(got[6].at(i * columns + j) ==
                    Approx(value / (static_cast<double>(rows) + 0.5)).epsilon(1e-6));
        }
    }
}

}  // namespace

TEST_CASE("statistics of columns, of any number of rows and columns") {
    Random random(31);
    Function unknown = statistics({-1, -1}, tested_device());
    for (const Dims& shape : {Dims{1, 1}, Dims{3, 2}, Dims{4, 63}, Dims{5, 64}, Dims{7, 65}, Dims{8, 128},
                              Dims{1001, 130}, Dims{2100, 37}, Dims{70, 1025}}) {
        const Array x = random_array(float32, shape, random, -3, 5);
        INFO(text_of(shape));
        const std::vector<Array> any = results_of(unknown, {x});
        check_statistics(any, x);
        check_statistics(results_of(statistics(shape, tested_device()), {x}), x);
        // On a GPU with the same bits, of one order of the sums.
        const std::vector<Array> gpu = results_of(statistics({-1, -1}, tested_gpu()), {x});
        for (std::size_t k = 0; k < any.size(); ++k) {
            INFO("result " << k << ": " << difference(gpu[k], any[k]));
            REQUIRE(same(gpu[k], any[k]));
        }
    }
}

TEST_CASE("statistics of no rows or no columns") {
    Function unknown = statistics({-1, -1}, tested_device());
    const Results none = unknown.call(std::vector<Array>{Array(float32, {5, 0})});
    for (std::size_t k = 0; k < none.size(); ++k) CHECK(none[k].size() == 0);
    const Expr x = matrix("x");
    Function sums = function({x}, {sum(x, {0}), mean(x, {0})}, {.device = tested_device()});
    const Results empty = sums.call(std::vector<Array>{Array(float32, {0, 70})});
    for (std::int64_t j = 0; j < 70; ++j) {
        CHECK(empty[0].at(j) == 0);
        CHECK(std::isnan(empty[1].at(j)));
    }
}

TEST_CASE("batch normalisation of channels-last images agrees on all devices, of a batch known or unknown") {
    Random random(32);
    for (const std::int64_t channels : {3, 64}) {
        const auto made = [&](std::int64_t images, const std::string& device) {
            const Expr x = input(float32, {images, 9, 8, channels}, "x");
            const Expr m = mean(x, {0, 1, 2}, {.keepdims = true}),
                       v = mean(sqr(x - m), {0, 1, 2}, {.keepdims = true});
            return function({x}, {(x - m) / sqrt(v + 1e-5F)}, {.device = device});
        };
        const std::int64_t n = 21, points = n * 72;
        const Array x = random_array(float32, {n, 9, 8, channels}, random, -1, 2);
        const Array known = results_of(made(n, tested_device()), {x})[0],
                    unknown = results_of(made(-1, tested_device()), {x})[0];
        REQUIRE(same(results_of(made(n, tested_gpu()), {x})[0], known));
        REQUIRE(same(results_of(made(-1, tested_gpu()), {x})[0], unknown));
        for (std::int64_t c = 0; c < channels; ++c) {
            double total = 0, squares = 0;
            for (std::int64_t p = 0; p < points; ++p) total += x.at(p * channels + c);
            const double m = total / static_cast<double>(points);
            for (std::int64_t p = 0; p < points; ++p) squares += std::pow(x.at(p * channels + c) - m, 2);
            const double scale = std::sqrt(squares / static_cast<double>(points) + 1e-5);
            for (std::int64_t p = 0; p < points; ++p)
                for (const Array* r : {&known, &unknown})
                    REQUIRE(r->at(p * channels + c) ==
                            Approx((x.at(p * channels + c) - m) / scale).margin(1e-4));
        }
    }
}

TEST_CASE("sums over rows and a few columns, of which some are repeated for each row") {
    PackedCases cases(tested_device(), 1e-5);
    Random random(32);
    for (const std::int64_t k : {2, 3, 7, 8, 10, 15, 17, 20, 24, 31})
        for (const bool known : {true, false}) {
            const std::int64_t rows = 517 + k, any = known ? rows : -1;
            const Expr x = input(float32, {any, k}, "x"), b = input(float32, Dims{k}, "b"),
                       image = input(uint8, {known ? 3 : -1, 24, 23, k}, "image"),
                       wide = input(float32, {any, k + 2}, "wide"), scale = input(float32, {3, k}, "scale");
            const std::vector<Array> values = {random_array(float32, {rows, k}, random, -1, 1),
                                               random_array(float32, Dims{k}, random, -1, 1),
                                               random_array(uint8, {3, 24, 23, k}, random, 0, 255),
                                               random_array(float32, {rows, k + 2}, random, 0, 1),
                                               random_array(float32, {3, k}, random, 0, 1)};
            const std::vector<Expr> in{x, b, image, wide, scale};
            const std::string what = fmt::format("{} columns of {} rows", k, known ? "known" : "any");
            const Expr pixels = image / 255;
            cases.add(what, in, values, mean(sqr(x - b)));
            cases.add(what + ", gradient", in, values, grad(mean(sqr(x - b)), b));
            cases.add(what + ", part", in, values, sum(wide[{colon, Slice{1, k + 1}}] * b));
            cases.add(what + ", images", in, values, mean(sum(clip(pixels + b, 0, 1) * b, {3}), {1, 2}));
            cases.add(what + ", all", in, values, sum(exp(-(pixels - b))));
            cases.add(what + ", colours of each image", in, values,
                      mean(abs(pixels - b) * reshape(scale, {3, 1, 1, k}), {1, 2}));
        }
    cases.run();
}

TEST_CASE("sums of a million short rows are as precise as those of each column") {
    constexpr std::int64_t rows = 1 << 20, columns = 10;
    const Expr x = matrix("x"), b = input(float32, Dims{columns}, "b");
    Random random(33);
    const Array values = random_array(float32, {rows, columns}, random, 0, 1),
                shift = random_array(float32, Dims{columns}, random, 0, 1);
    const Expr fixed = reshape(x, {x.length(0), columns});
    double expected = 0;
    for (std::int64_t i = 0; i < rows * columns; ++i)
        expected += std::pow(values.at(i) - shift.at(i % columns), 2);
    Function f = function({x, b}, sum(sqr(fixed - b)), {.device = tested_device()});
    CHECK(f(values, shift)[0].at(0) == Approx(expected).epsilon(1e-6));
}

TEST_CASE("sums of an unknown number of images with interleaved colours are added up in parts") {
    constexpr std::int64_t images = 3, colours = 3, all = 96 * 128 * colours;
    const Expr x = input(float32, {-1, 96, 128, colours}, "x"), w = input(float32, Dims{colours}, "w"),
               c = input(float32, {-1, 1, 1, 1}, "c");
    Random random(34);
    const Array values = random_array(float32, {images, 96, 128, colours}, random, 0, 1),
                weights = random_array(float32, Dims{colours}, random, 0, 1),
                factors = random_array(float32, {images, 1, 1, 1}, random, 0, 1);
    Function f = function({x, w, c}, {mean(sum(x * w, 3), {1, 2}), sum(sqr(x * c - w), {1, 2, 3})},
                          {.device = tested_device()});
    const std::vector<Array> got = results_of(f, {values, weights, factors});
    for (std::int64_t i = 0; i < images; ++i) {
        double luminance = 0, squares = 0;
        for (std::int64_t k = 0; k < all; ++k) {
            const double value = values.at(i * all + k), weight = weights.at(k % colours);
            luminance += value * weight;
            squares += std::pow(value * factors.at(i) - weight, 2);
        }
        CHECK(got[0].at(i) == Approx(luminance * colours / all).epsilon(1e-6));
        CHECK(got[1].at(i) == Approx(squares).epsilon(1e-6));
    }
}

TEST_CASE("sums of half precision over rows and a few columns are rounded once") {
    constexpr std::int64_t rows = 1000, columns = 20;
    Array values(float32, {rows, columns});
    for (std::int64_t i = 0; i < rows; ++i) {
        auto* row = static_cast<float*>(values.mutable_data()) + i * columns;
        std::fill(row, row + columns, 0.0F);
        row[0] = 100;  // the sum of this column is more than float16 holds
        row[1] = -100;
        row[2] = 0.25F;
    }
    const Expr x = input(float16, {rows, columns}, "x"), b = input(float32, Dims{10}, "b");
    const Expr part = x[{colon, Slice{0, 10}}];
    Function f = function({x, b}, {sum(part), sum(cast(cast(part, float32) - b, float16))},
                          {.device = tested_device()});
    const std::vector<Array> got = results_of(f, {values.as(float16), Array(float32, Dims{10})});
    CHECK(got[0].at(0) == 250);
    CHECK(got[1].at(0) == 250);
}

TEST_CASE("interleaved channels with a number of each pixel, column or row, of every dtype") {
    PackedCases cases(tested_device());
    Random random(11);
    for (const std::int64_t channels : {2, 3, 5, 19})
        for (const DType dtype : {float32, float64, float16, int8, uint8, int16, int32, int64, boolean}) {
            const std::int64_t images = 2, height = 5, width = 37;
            const Dims of_pixels{images, height, width, 1}, of_columns{width, 1},
                all{images, height, width, channels};
            const Expr x = input(float32, all, "x"), p = input(dtype, of_pixels, "p"),
                       q = input(dtype, of_columns, "q");
            const auto values = [&](const Dims& shape) { return random_array(dtype, shape, random, 0, 5); };
            const std::vector<Array> arguments{random_array(float32, all, random), values(of_pixels),
                                               values(of_columns)};
            const Expr moved = x - cast(p, float32), scaled = exp(-sqr(x)) * sqrt(cast(q, float32));
            const std::string of = fmt::format("{} {}", name_of(dtype), channels);
            cases.add(of + ", columns", {x, p}, {arguments[0], arguments[1]}, sum(sqr(moved), {2}));
            cases.add(of + ", largest", {x, p}, {arguments[0], arguments[1]}, max(moved, {1, 2}));
            cases.add(of + ", scaled", {x, q}, {arguments[0], arguments[2]}, sum(scaled, {2}));
            cases.add(of + ", chosen", {x, p, q}, arguments,
                      sum(where(gt(cast(p, float32), cast(q, float32)), x, 1 - x), {2}));
            cases.add(of + ", of all", {x, p}, {arguments[0], arguments[1]}, sum(moved * x, {1, 2, 3}));
        }
    cases.run(60);
}
