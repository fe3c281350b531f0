// softmax and log_softmax: values, extremes, gradients, what they decompose to, messages.
#include "ops/nn/softmax.h"

#include <cmath>

#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("softmax by hand") {
    const Expr x = input(float64, 2, "x");
    const Array value(std::vector<double>{0, std::log(2.0), std::log(5.0), 1, 1, 1}, {2, 3});
    const Array rows = evaluated(softmax(x), {x}, {value});
    const std::vector<double> expected{0.125, 0.25, 0.625, 1.0 / 3, 1.0 / 3, 1.0 / 3};
    for (std::int64_t i = 0; i < 6; ++i) CHECK(rows.at(i) == Approx(expected[static_cast<std::size_t>(i)]));
    const Array logs = evaluated(log_softmax(x), {x}, {value});
    for (std::int64_t i = 0; i < 6; ++i)
        CHECK(logs.at(i) == Approx(std::log(expected[static_cast<std::size_t>(i)])));
    const Array columns = evaluated(softmax(x, 0), {x}, {value});
    CHECK(columns.at(0) == Approx(1 / (1 + std::exp(1.0))));
    CHECK(columns.at(0) + columns.at(3) == Approx(1));
}

TEST_CASE("along every axis: decomposition and gradients") {
    for (int axis = -3; axis < 3; ++axis) {
        const Expr x = input(float64, 3, "x");
        const Array value = sample(float64, {2, 3, 4}, 1);
        require_decomposes(softmax(x, axis), {x}, {value});
        require_decomposes(log_softmax(x, axis), {x}, {value});
        for (const bool symbolic : {false, true}) {
            require_gradient([&](const std::vector<Expr>& v) { return softmax(v[0], axis); }, {value},
                             symbolic);
            require_gradient([&](const std::vector<Expr>& v) { return log_softmax(v[0], axis); }, {value},
                             symbolic);
        }
    }
    require_gradient(
        [](const std::vector<Expr>& v) { return grad(sum(softmax(v[0]) * softmax(v[0])), v[0]); },
        {sample(float64, {2, 3}, 2)});
    require_gradient([](const std::vector<Expr>& v) { return softmax(v[0]); }, {sample(float64, {4}, 3)});
}

TEST_CASE("extreme logits stay finite") {
    const Expr x = input(float64, 2, "x");
    const Array value(std::vector<double>{1e5, 0, -1e5, -infinity, 0, 0}, {2, 3});
    const Array y = evaluated(softmax(x), {x}, {value});
    CHECK(y.to_vector<double>() == std::vector<double>{1, 0, 0, 0, 0.5, 0.5});
    const Array logs = evaluated(log_softmax(x), {x}, {value});
    CHECK(logs.at(0) == 0);
    CHECK(logs.at(1) == -1e5);
    CHECK(logs.at(3) == -infinity);
    require_decomposes(softmax(x), {x}, {value});
}

TEST_CASE("softmax takes floats and an axis that exists") {
    const std::string message = message_of<TypeError>([] { softmax(input(int8, 2, "x")); });
    CHECK_THAT(message, ContainsSubstring("\"x\" (int8"));
    CHECK_THAT(message, ContainsSubstring("; write cast(x, float32)"));
    CHECK_THAT(message_of<IndexError>([] { log_softmax(matrix("x"), 2); }), ContainsSubstring("no axis 2"));
}

TEST_CASE("a softmax along an axis without elements has none") {
    for (const Dims& shape : {Dims{3, 0}, Dims{0, 3}, Dims{0, 0}})
        for (const int axis : {0, 1}) {
            const Expr x = input(float64, shape, "x");
            const Array nothing(float64, shape);
            for (const Expr& y : {softmax(x, axis), log_softmax(x, axis)}) {
                CHECK(evaluated(y, {x}, {nothing}).shape() == shape);
                require_decomposes(y, {x}, {nothing});
            }
        }
}
