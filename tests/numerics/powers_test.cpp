// Powers with constant exponents, and their first and second gradients, against the formula in float64.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const std::vector<double> exponents = {-4,  -3.5, -3,  -2.5, -2,  -1.5, -1,  -0.5, 0.5, 1,
                                       1.5, 2,    2.5, 3,    3.5, 4,    4.5, 5,    0.3};
const std::vector<double> points = {0.0, -0.0, 1.0,   -1.0,      2.5,      -2.5, 1e-3, 7e5,    1e-6,
                                    3,   -1e3, 0.125, -infinity, infinity, NAN,  1e9,  -2e-39, -1e-310};

// The n-th derivative of x^c at x.
double derivative(double x, double c, int n) {
    double factor = 1;
    for (int k = 0; k < n; ++k) factor *= c - k;
    return factor == 0 ? 0 : factor * std::pow(x, c - n);
}

bool agree(double value, double expected, double tolerance) {
    if (std::isnan(expected) || std::isinf(expected) || expected == 0)
        return std::isnan(expected) ? std::isnan(value) : value == expected;
    return std::abs(value - expected) <= tolerance * std::abs(expected);
}

std::string differences(DType dtype, double tolerance, double largest) {
    const Expr x = input(dtype, {-1}, "x");
    std::vector<Expr> results;
    for (const double c : exponents) {
        const Expr y = pow(x, constant(dtype == float32 ? Array(static_cast<float>(c)) : Array(c)));
        const Expr first = grad(sum(y), x);
        const Expr second = c == 1 ? first * 0 : grad(sum(first), x);  // that of 1 depends on nothing
        for (const Expr& r : {y, first, second}) results.push_back(cast(r, float64));
    }
    Function f = function({x}, results, {.device = tested_device()});
    const Array at(points, {static_cast<std::int64_t>(points.size())});
    std::vector<float> narrow(points.begin(), points.end());
    const Results r = f(dtype == float32 ? Array(narrow) : at);
    std::string all;
    for (std::size_t k = 0; k < results.size(); ++k) {
        const double c = dtype == float32 ? static_cast<float>(exponents[k / 3]) : exponents[k / 3];
        const auto values = r[k].to_vector<double>();
        for (std::size_t i = 0; i < points.size(); ++i) {
            const double place = dtype == float32 ? narrow[i] : points[i];
            const double expected = derivative(place, c, static_cast<int>(k % 3));
            const double size = std::abs(expected);
            if (std::isfinite(expected) && size != 0 && (size > largest || size < 1 / largest)) continue;
            if (!agree(values[i], expected, tolerance))
                all +=
                    fmt::format("derivative {} of {}^{}: {}, not {}\n", k % 3, place, c, values[i], expected);
        }
    }
    return all;
}

}  // namespace

TEST_CASE("powers and their gradients at zeros, infinities and elsewhere") {
    CHECK(differences(float32, 2e-6, 1e37) == "");
    CHECK(differences(float64, 1e-14, 1e300) == "");
    // Results below the normal numbers.
    const Expr x = input(float32, {1}, "x");
    Function f = function({x}, {pow(x, -2), pow(x, -4), pow(x, -3.5)}, {.device = tested_device()});
    for (const auto& [at, result, expected] :
         {std::tuple(1e20F, 0, 1e-40), std::tuple(1e10F, 1, 1e-40), std::tuple(3e12F, 2, 2.1383e-44)})
        CHECK(std::abs(f(Array(std::vector<float>{at}))[result].to_vector<float>()[0] - expected) <= 1.5e-45);
}

TEST_CASE("stable forms are known when they are written with powers") {
    const Expr x = input(float32, {3}, "x");
    const Expr e = exp(x), p = softmax(x);
    const std::vector<Expr> outputs{e * pow(sum(e, 0, {.keepdims = true}), -1), log(pow(p, 3)),
                                    log(pow(e, -1)), grad(sum(log(pow(p, 3))), x),
                                    grad(sum(pow(1 + exp(-x), -1)), x)};
    Function f = function({x}, outputs, {.device = tested_device()});
    for (const std::vector<float>& at : {std::vector<float>{120, -120, 500}, {1e30F, 0, 0}}) {
        const Results r = f(Array(at));
        for (std::size_t k = 0; k < outputs.size(); ++k)
            for (const float value : r[k].to_vector<float>()) {
                INFO("result " << k << " at " << at[0]);
                CHECK_FALSE(std::isnan(value));
            }
        const auto shares = r[0].to_vector<float>();
        CHECK(shares[at[0] > 1e9F ? 0 : 2] == 1);
    }
    CHECK(f(Array(std::vector<float>{1000, 0, 0}))[1].to_vector<float>()[1] == -3000);
}

TEST_CASE("quotients by roots that are repeated, at zeros, infinities and the smallest numbers") {
    const float infinity = std::numeric_limits<float>::infinity(), least = 1e-45F;
    const std::vector<float> numbers = {0, -0.0F, 1, -3, 1e-38F, 1e30F, -1e38F, least, infinity, NAN};
    const std::vector<float> squares = {0, least, 1e-38F, 2, 1e30F, 3e38F, infinity, -1, NAN};
    const auto n = static_cast<std::int64_t>(numbers.size()), k = static_cast<std::int64_t>(squares.size());
    for (const bool known : {true, false}) {
        const Expr x = known ? input(float32, {n}, "x") : vector("x"),
                   v = known ? input(float32, {k, 1}, "v") : input(float32, {-1, 1}, "v");
        Function f =
            function({x, v}, {x / sqrt(v), (x - 1) / sqrt(v + 1e-5F) * x}, {.device = tested_device()});
        const Results r = f(Array(numbers), Array(std::span<const float>(squares), {k, 1}));
        const auto quotients = r[0].to_vector<float>();
        for (std::int64_t i = 0; i < k; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
                const double exact =
                    double(numbers[std::size_t(j)]) / std::sqrt(double(squares[std::size_t(i)]));
                const auto wanted = static_cast<float>(exact);
                const float got = quotients[std::size_t(i * n + j)];
                INFO(numbers[std::size_t(j)] << " / sqrt(" << squares[std::size_t(i)] << ")");
                CHECK((std::isnan(wanted)
                           ? std::isnan(got)
                           : got == wanted ||
                                 std::abs(got - wanted) <= std::max(3e-7F * std::abs(wanted), 2 * least)));
            }
    }
}
