// Densities, growth curves and other quotients and products of exponentials where parts of them overflow:
// values and derivatives on the tested device against long double.
#include <cmath>
#include <functional>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;

namespace {

using Wide = long double;

struct Curve {
    const char* name;
    std::function<Expr(const Expr& x)> form;
    Wide (*value)(Wide);
    Wide (*derivative)(Wide);
};

Wide logistic(Wide x) { return 1 / (1 + std::exp(-x)); }
Wide density(Wide x) { return logistic(x) * logistic(-x); }
Wide extreme(Wide x) { return std::exp(x - std::exp(x)); }
// log(1 - exp(-exp(x))) and its derivative
Wide log_cloglog(Wide x) { return x < -40 ? x : std::log(-std::expm1(-std::exp(x))); }
Wide slope_cloglog(Wide x) {
    const Wide t = std::exp(x);
    return t > 11000 ? 0 : x < -40 ? 1 : t / std::expm1(t);
}

const std::vector<Curve> curves = {
    {"1 / cosh(x)", [](const Expr& x) { return 1 / cosh(x); }, [](Wide x) { return 1 / std::cosh(x); },
     [](Wide x) { return -std::tanh(x) / std::cosh(x); }},
    {"2 / (exp(x) + exp(-x))", [](const Expr& x) { return 2 / (exp(x) + exp(-x)); },
     [](Wide x) { return 1 / std::cosh(x); }, [](Wide x) { return -std::tanh(x) / std::cosh(x); }},
    {"1 / sqr(cosh(x))", [](const Expr& x) { return 1 / sqr(cosh(x)); },
     [](Wide x) { return 1 / std::cosh(x) / std::cosh(x); },
     [](Wide x) { return -2 * std::tanh(x) / std::cosh(x) / std::cosh(x); }},
    {"sinh(x) / cosh(x)", [](const Expr& x) { return sinh(x) / cosh(x); },
     [](Wide x) { return std::tanh(x); }, [](Wide x) { return 1 / std::cosh(x) / std::cosh(x); }},
    {"a logistic density", [](const Expr& x) { return exp(-x) / sqr(1 + exp(-x)); }, density,
     [](Wide x) { return -density(x) * std::tanh(x / 2); }},
    {"a logistic density by exp(x)", [](const Expr& x) { return exp(x) / ((1 + exp(x)) * (1 + exp(x))); },
     density, [](Wide x) { return -density(x) * std::tanh(x / 2); }},
    {"a Gompertz curve", [](const Expr& x) { return 3 * exp(-2 * exp(-0.5 * x)); },
     [](Wide x) { return 3 * std::exp(-2 * std::exp(-x / 2)); },
     [](Wide x) { return 3 * std::exp(-2 * std::exp(-x / 2) - x / 2); }},
    {"a complementary log-log link", [](const Expr& x) { return 1 - exp(-exp(x)); },
     [](Wide x) { return -std::expm1(-std::exp(x)); }, extreme},
    {"its logarithm", [](const Expr& x) { return log(1 - exp(-exp(x))); }, log_cloglog, slope_cloglog},
    {"a Gumbel density", [](const Expr& x) { return exp(x) * exp(-exp(x)); }, extreme,
     [](Wide x) { return extreme(x) - (x > 100 ? 0 : std::exp(2 * x - std::exp(x))); }},
    {"a Gumbel density, joined", [](const Expr& x) { return exp(x - exp(x)); }, extreme,
     [](Wide x) { return extreme(x) - (x > 100 ? 0 : std::exp(2 * x - std::exp(x))); }},
    {"a Richards curve", [](const Expr& x) { return 1 / pow(1 + exp(-x), 2.5); },
     [](Wide x) { return std::pow(1 + std::exp(-x), -2.5L); },
     [](Wide x) { return 2.5L * std::pow(1 + std::exp(-x), -2.5L) * logistic(-x); }},
    {"a power of a logistic", [](const Expr& x) { return pow(1 + exp(-x), -0.5); },
     [](Wide x) { return std::pow(1 + std::exp(-x), -0.5L); },
     [](Wide x) { return 0.5L * std::pow(1 + std::exp(-x), -0.5L) * logistic(-x); }},
    {"exp(x) * exp(-x)", [](const Expr& x) { return exp(x) * exp(-x); }, [](Wide) { return Wide{1}; },
     [](Wide) { return Wide{0}; }},
    {"log2(sigmoid(x))", [](const Expr& x) { return log2(sigmoid(x)); },
     [](Wide x) {
         return (x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x))) / std::log(2.0L);
     },
     [](Wide x) { return logistic(-x) / std::log(2.0L); }},
    {"log10(softmax)",
     [](const Expr& x) {
         return log10(softmax(stack({x, zeros_like(x)}, 1)))[{Slice{}, 0}];
     },
     [](Wide x) {
         return (x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x))) / std::log(10.0L);
     },
     [](Wide x) { return logistic(-x) / std::log(10.0L); }},
    {"logit(sigmoid(x))", [](const Expr& x) { return log(sigmoid(x) / (1 - sigmoid(x))); },
     [](Wide x) { return x; }, [](Wide) { return Wide{1}; }},
    {"log(cosh(x))", [](const Expr& x) { return log(cosh(x)); },
     [](Wide x) { return std::abs(x) + std::log1p(std::exp(-2 * std::abs(x))) - std::log(2.0L); },
     [](Wide x) { return std::tanh(x); }},
};

const std::vector<double> points = {-1000, -200, -95, -50, -20, -3, -0.5, 0, 0.5, 3, 20, 50, 95, 200, 1000};

// An exponential of a rounded exponent has as many wrong digits as the exponent has.
Wide tolerance(Wide expected, double at, DType dtype) {
    const Wide digits = dtype == float64 ? 4e-16L : 2.4e-7L, least = dtype == float64 ? 1e-300L : 1e-37L;
    const Wide exponent = expected == 0 ? 0 : std::abs(std::log(std::abs(expected)));
    return digits * (std::abs(expected) * (8 + 2 * exponent) + std::min<Wide>(std::abs(at), 1)) + least;
}

void check(DType dtype, const Expr& x) {
    std::vector<Expr> outputs;
    for (const Curve& f : curves) {
        outputs.push_back(f.form(x));
        outputs.push_back(grad(sum(outputs.back()), x));
    }
    Function function_of_all = function({x}, outputs, {.name = "overflow", .device = test::tested_device()});
    const Results got = function_of_all(Array(points).as(dtype));
    for (std::size_t k = 0; k < curves.size(); ++k)
        for (std::size_t i = 0; i < points.size(); ++i) {
            const auto at = static_cast<std::int64_t>(i);
            const Wide value = curves[k].value(points[i]), derivative = curves[k].derivative(points[i]);
            INFO(curves[k].name << " at " << points[i] << ", " << name_of(dtype) << ": " << got[2 * k].at(at)
                                << " and " << got[2 * k + 1].at(at) << ", not " << static_cast<double>(value)
                                << " and " << static_cast<double>(derivative));
            CHECK(std::abs(got[2 * k].at(at) - value) <= tolerance(value, points[i], dtype));
            CHECK(std::abs(got[2 * k + 1].at(at) - derivative) <= tolerance(derivative, points[i], dtype));
        }
}

}  // namespace

TEST_CASE("quotients and products of exponentials are right where parts of them overflow") {
    const DType dtype = GENERATE(float32, float64);
    SECTION("a length known") {
        check(dtype, input(dtype, Dims{static_cast<std::int64_t>(points.size())}, "x"));
    }
    SECTION("a length unknown") { check(dtype, input(dtype, 1, "x")); }
}

TEST_CASE("a softmax over what a mask of numbers leaves") {
    const Array mask(std::vector<float>{1, 1, 0, 0, 1, 1}, {2, 3});
    const Expr x = GENERATE(input(float32, 2, "x"), input(float32, Dims{2, 3}, "x"));
    const Expr left = exp(x) * constant(mask);
    const Expr shares = left / sum(left, {1}, {.keepdims = true});
    Function f = function({x}, {shares, grad(sum(sqr(shares)), x)}, {.device = test::tested_device()});
    const Results got = f(Array(std::vector<float>{1000, 999, 2000, 3000, -1000, -1001}, {2, 3}));
    const double more = 1 / (1 + std::exp(-1.0));
    const std::vector<double> expected{more, 1 - more, 0, 0, more, 1 - more};
    for (std::int64_t i = 0; i < 6; ++i) {
        CHECK(got[0].at(i) == Approx(expected[static_cast<std::size_t>(i)]));
        CHECK(std::isfinite(got[1].at(i)));
    }
}
