// Variances and standard deviations against float64: axes, corrections, numbers far from 0, gradients.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Of rows of [n, m].
std::vector<double> variances(const std::vector<double>& x, std::size_t n, std::size_t m, int ddof) {
    std::vector<double> r;
    for (std::size_t i = 0; i < n; ++i) {
        double mean = 0, squares = 0;
        for (std::size_t j = 0; j < m; ++j) mean += x[i * m + j] / static_cast<double>(m);
        for (std::size_t j = 0; j < m; ++j) squares += (x[i * m + j] - mean) * (x[i * m + j] - mean);
        r.push_back(squares / (static_cast<double>(m) - ddof));
    }
    return r;
}

}  // namespace

TEST_CASE("variances over rows, columns and everything") {
    Random random(41);
    for (const DType dtype : {uint8, int32, float32, float64})
        for (const int ddof : {0, 1}) {
            constexpr std::size_t n = 20, m = 33;
            const Expr x = matrix("x", dtype);
            const Array values = random_array(dtype, {n, m}, random, 0, 100);
            const std::vector<double> from = values.as(float64).to_vector<double>();
            std::vector<double> turned;
            for (std::size_t j = 0; j < m; ++j)
                for (std::size_t i = 0; i < n; ++i) turned.push_back(from[i * m + j]);
            const VarianceOptions plain{.ddof = ddof}, kept{.keepdims = true, .ddof = ddof};
            const Results got =
                function({x},
                         {variance(x, 1, plain), variance(x, 0, kept), variance(x, {}, plain),
                          standard_deviation(x, {0, 1}, kept), standard_deviation(x, -1, plain)},
                         here())(values);
            const DType wanted = dtype == float64 ? float64 : float32;
            const auto expected = [&](const std::vector<double>& list, const Dims& shape) {
                return Array(list, shape).as(wanted);
            };
            const auto roots = [](std::vector<double> list) {
                for (double& v : list) v = std::sqrt(v);
                return list;
            };
            const std::vector<double> rows = variances(from, n, m, ddof),
                                      all = variances(from, 1, n * m, ddof);
            INFO(name_of(dtype) << ", ddof " << ddof);
            const Tolerance close{.relative = dtype == float64 ? 1e-13 : 3e-6};
            CHECK(difference(got[0], expected(rows, {n}), close) == "");
            CHECK(difference(got[1], expected(variances(turned, m, n, ddof), {1, m}), close) == "");
            CHECK(difference(got[2], expected(all, {}), close) == "");
            CHECK(difference(got[3], expected(roots(all), {1, 1}), close) == "");
            CHECK(difference(got[4], expected(roots(rows), {n}), close) == "");
        }
}

TEST_CASE("variances of numbers far from 0, of nothing and of one number") {
    const Expr x = matrix("x");
    const Array far = {{10000.F, 10001.F, 10002.F}, {-4.F, -4.F, -4.F}};
    const Results got =
        function({x}, {variance(x, 1), variance(x, 1, {.ddof = 1}), standard_deviation(x, 1)}, here())(far);
    CHECK(got[0].to_vector<float>()[0] == Approx(2.0 / 3).epsilon(1e-6));
    CHECK(got[1].to_vector<float>()[0] == Approx(1).epsilon(1e-6));
    CHECK(got[0].to_vector<float>()[1] == 0);
    Function edge = function({x}, {variance(x, 1), variance(x, 1, {.ddof = 1})}, here());
    const Results of_nothing = edge(zeros({1, 0})), of_one = edge(Array{{7.F}});
    for (const std::size_t i : {0, 1}) CHECK(std::isnan(of_nothing[i].to_vector<float>()[0]));
    CHECK(of_one[0].to_vector<float>()[0] == 0);
    CHECK(std::isnan(of_one[1].to_vector<float>()[0]));
}

TEST_CASE("the gradient of a standard deviation, which is 0 where all elements are equal") {
    const Expr x = matrix("x", float64);
    const Array values = Array(std::vector<double>{1, 4, 2, 9, 5, 5, 5, 5}, {2, 4});
    const std::vector<double> got =
        function({x}, grad(sum(standard_deviation(x, 1)), x), here())(values)[0].to_vector<double>();
    const double mean = 4, deviation = std::sqrt((9 + 0 + 4 + 25) / 4.0);
    for (std::size_t i = 0; i < 4; ++i)
        CHECK(got[i] == Approx((std::vector<double>{1, 4, 2, 9}[i] - mean) / (4 * deviation)).epsilon(1e-12));
    for (std::size_t i = 4; i < 8; ++i) CHECK(got[i] == 0);
}

TEST_CASE("variances that cannot be") {
    const Expr x = matrix("x");
    CHECK_THROWS_AS(variance(x, 2), IndexError);
    CHECK_THROWS_AS(variance(x, {0, -2}), IndexError);
    CHECK_THROWS_AS(standard_deviation(x, 0, {.ddof = -1}), Error);
}

TEST_CASE("variances of integers that float32 does not hold, and of half precision") {
    const Expr x = vector("x", int64), y = vector("y", float16), z = vector("z", bfloat16);
    for (const std::int64_t first : {std::int64_t{0}, std::int64_t{1} << 24, std::int64_t{1'000'000'000}}) {
        const Array values(std::vector<std::int64_t>{first, first + 1, first + 2, first + 3}, {4});
        const Results got =
            function({x}, {variance(x), standard_deviation(x, {}, {.ddof = 1})}, here())(values);
        CHECK(got[0].dtype() == float32);
        CHECK(got[0].at(0) == 1.25);
        CHECK(got[1].at(0) == Approx(std::sqrt(5.0 / 3)));
    }
    const Array halves(std::vector<float>{1, 2, 3, 4}, {4});
    const Results got = function({y, z}, {variance(y), standard_deviation(z), mean(y)}, here())(
        halves.as(float16), halves.as(bfloat16));
    CHECK(got[0].dtype() == got[2].dtype());
    CHECK(got[0].at(0) == 1.25);
    CHECK(got[1].at(0) == Approx(std::sqrt(1.25)).epsilon(0.004));
}
