// Long rows: several partial results a lane, rows that are cut into chunks within one task, and softmax over
// both, against plain loops in float64 and with the same bits on other devices.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/options.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct OfRow {
    double sum = 0, product = 1, highest = 0, lowest = 0, exponentials = 0;
    bool any = false, all = true;
};

OfRow of_row(const Array& x, std::int64_t row) {
    const std::int64_t n = x.shape()[1];
    OfRow r;
    r.highest = r.lowest = x.at(row * n);
    for (std::int64_t k = 0; k < n; ++k) {
        const double v = x.at(row * n + k);
        r.sum += v;
        r.product *= v;
        r.highest = std::max(r.highest, v);
        r.lowest = std::min(r.lowest, v);
        r.any = r.any || v != 0;
        r.all = r.all && v != 0;
    }
    for (std::int64_t k = 0; k < n; ++k) r.exponentials += std::exp(x.at(row * n + k) - r.highest);
    return r;
}

// Lengths around whole turns of 64 partial results, known and unknown; many long rows.
const std::vector<Dims> shapes = {{3, 255}, {3, 256}, {2, 257}, {5, 272}, {3, 300},   {2, 319},
                                  {4, 320}, {1, 383}, {2, 784}, {7, 999}, {65, 16500}};

}  // namespace

TEST_CASE("reductions of long rows") {
    const auto reductions = [](const Expr& x) {
        const bool half = is_float(x.dtype()) && bits_of(x.dtype()) < 32;  // for storage only
        const Expr v = half ? cast(x, float32) : x, one = cast(1, v.dtype());
        return function({x}, {sum(v, {1}), max(v, {1}), min(v, {1}), any(v, {1}), all(v, {1}),
                              prod(where(eq(v, 0), one, one), {1}), sum(cast(v, float64) * 0.5 + 1, {1})});
    };
    for (const DType dtype : {float32, float64, float16, bfloat16, int8, uint8, int32, int64, boolean}) {
        Function of_any = reductions(input(dtype, 2, "x"));
        for (const Dims& shape : shapes)
            for (const bool known : {true, false}) {
                // Lengths that are known mean one function each.
                if (known && dtype != float32 && shape[1] != 319 + bytes_of(dtype)) continue;
                Random random(static_cast<std::uint64_t>(shape[1]));
                const Array values = random_array(dtype, shape, random, is_float(dtype) ? -2 : 0, 2);
                Function of_shape = known ? reductions(input(dtype, shape, "x")) : of_any;
                const Results got = of_shape(values);
                INFO(name_of(dtype) << " " << text_of(shape) << (known ? " known" : " unknown"));
                const auto n = static_cast<double>(shape[1]);
                for (std::int64_t row = 0; row < shape[0]; ++row) {
                    const OfRow r = of_row(values, row);
                    REQUIRE(std::abs(got[0].at(row) - r.sum) <= 1e-5 * std::max(n / 20, std::abs(r.sum)));
                    REQUIRE(got[1].at(row) == r.highest);
                    REQUIRE(got[2].at(row) == r.lowest);
                    REQUIRE(got[3].at(row) == static_cast<double>(r.any));
                    REQUIRE(got[4].at(row) == static_cast<double>(r.all));
                    REQUIRE(got[5].at(row) == 1);
                    REQUIRE(got[6].at(row) == Approx(r.sum / 2 + n).epsilon(1e-12));
                }
            }
    }
}

TEST_CASE("softmax of long rows, products of rows and vectors") {
    for (const DType dtype : {float32, float64}) {
        const Expr x = matrix("x", dtype), w = vector("w", dtype);
        Function f = function({x, w}, {softmax(x), log_softmax(x), dot(x, w)});
        for (const Dims& shape : shapes) {
            Random random(static_cast<std::uint64_t>(shape[1]) + 1);
            const Array values = random_array(dtype, shape, random, -9, 9),
                        weights = random_array(dtype, {shape[1]}, random, -1, 1);
            const Results got = f(values, weights);
            INFO(name_of(dtype) << " " << text_of(shape));
            const double tolerance = dtype == float32 ? 1e-5 : 1e-13;
            for (std::int64_t row = 0; row < shape[0]; ++row) {
                const OfRow r = of_row(values, row);
                double product = 0;
                for (std::int64_t k = 0; k < shape[1]; ++k) {
                    const std::int64_t at = row * shape[1] + k;
                    const double shifted = values.at(at) - r.highest;
                    product += values.at(at) * weights.at(k);
                    REQUIRE(std::abs(got[0].at(at) - std::exp(shifted) / r.exponentials) <=
                            tolerance * std::exp(shifted) / r.exponentials);
                    REQUIRE(std::abs(got[1].at(at) - (shifted - std::log(r.exponentials))) <= tolerance * 30);
                }
                REQUIRE(std::abs(got[2].at(row) - product) <=
                        tolerance * 9 * std::sqrt(static_cast<double>(shape[1])));
            }
        }
    }
}

TEST_CASE("special values in long rows") {
    const float infinity = INFINITY;
    for (const std::int64_t n : {300, 17'000}) {
        std::vector<float> list(static_cast<std::size_t>(70 * n), 1.5F);
        const auto at = [&](std::int64_t row, std::int64_t k) -> float& {
            return list[static_cast<std::size_t>(row * n + k)];
        };
        at(0, n - 1) = NAN;
        at(1, 70) = infinity;
        for (std::int64_t k = 0; k < n; ++k) at(2, k) = -infinity;
        at(3, 40) = -infinity;
        for (std::int64_t k = 0; k < n; ++k) at(4, k) = -200.0F * static_cast<float>(k);
        const Expr x = matrix("x");
        Function f = function({x}, {softmax(x), max(x, {1}), min(x, {1}), sum(x, {1})});
        const Results got = f(Array(list, {70, n}));
        INFO(n);
        for (std::int64_t k = 0; k < n; ++k) {
            for (const std::int64_t row : {0, 1, 2}) REQUIRE(std::isnan(got[0].at(row * n + k)));
            REQUIRE(got[0].at(3 * n + k) == Approx(k == 40 ? 0.0 : 1.0 / static_cast<double>(n - 1)));
            REQUIRE(got[0].at(4 * n + k) == (k == 0 ? 1 : 0));
        }
        CHECK(std::isnan(got[1].at(0)));
        CHECK(std::isnan(got[2].at(0)));
        CHECK(got[1].at(1) == INFINITY);
        CHECK(got[1].at(2) == -INFINITY);
        CHECK(got[2].at(3) == -INFINITY);
        CHECK(got[3].at(1) == INFINITY);
        CHECK(got[3].at(69) == Approx(1.5 * static_cast<double>(n)));
    }
}

TEST_CASE("long rows have the same bits on the emulator and for any number of threads") {
    Random random(8);
    for (const Dims& shape : {Dims{3, 300}, Dims{70, 16'500}, Dims{2, 40'000}, Dims{9, 20'000}}) {
        const Array values = random_array(float32, shape, random, -3, 3),
                    weights = random_array(float32, {shape[1]}, random, -1, 1);
        const auto results = [&](const std::string& device, int threads) {
            Options chosen = options();
            chosen.threads = threads;
            const ScopedOptions scope(chosen);
            const Expr x = input(float32, shape, "x"), w = input(float32, Dims{shape[1]}, "w");
            Function f = function({x, w}, {softmax(x), sum(x, {1}), dot(x, w), sum(x * 3), max(x, {1})},
                                  {.device = device});
            const Results r = f(values, weights);
            std::vector<Array> all;
            for (std::size_t k = 0; k < r.size(); ++k) all.push_back(r[k]);
            return all;
        };
        const std::vector<Array> one = results("cpu", 1);
        for (const auto& [device, threads] :
             {std::pair<std::string, int>{"cpu", 2}, {"cpu", 3}, {"emulator", 1}}) {
            const std::vector<Array> other = results(device, threads);
            for (std::size_t k = 0; k < one.size(); ++k) {
                INFO(text_of(shape) << " result " << k << " on " << device << " with " << threads << ": "
                                    << difference(other[k], one[k]));
                CHECK(same(other[k], one[k]));
            }
        }
    }
}
