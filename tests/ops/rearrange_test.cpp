// roll, stack and repeat, and activations that are written with other operations.
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("roll moves elements along an axis, by any number of places") {
    const Array a = sample(float32, {3, 5});
    for (const std::int64_t shift : {0, 1, 2, 4, 5, 7, -1, -5, -13}) {
        for (const bool known : {true, false}) {
            const Expr x = known ? input(float32, Dims{3, 5}, "x") : matrix("x");
            const Array down = evaluated(roll(x, shift, 0), {x}, {a}),
                        right = evaluated(roll(x, shift, -1), {x}, {a});
            const auto at = [](std::int64_t i, std::int64_t n) { return (i % n + n) % n; };
            for (std::int64_t i = 0; i < 3; ++i)
                for (std::int64_t j = 0; j < 5; ++j) {
                    REQUIRE(down.at(i * 5 + j) == a.at(at(i - shift, 3) * 5 + j));
                    REQUIRE(right.at(i * 5 + j) == a.at(i * 5 + at(j - shift, 5)));
                }
        }
    }
    const Expr v = vector("v");
    for (const std::int64_t n : {0, 1}) {
        const Array one = sample(float32, {n});
        CHECK(numbers(evaluated(roll(v, 3, 0), {v}, {one})) == numbers(one));
    }
    const Expr m = matrix("m");
    for (const std::int64_t shift : {1, -1, 4, -7})
        CHECK(roll(m, shift, 0).node()->type.shape == m.node()->type.shape);
    // Fields that move into each other: lengths stay those of the inputs, however many steps there are.
    Expr h = m, w = matrix("w");
    constexpr int steps = 40;
    for (int i = 0; i < steps; ++i) {
        const Expr next = 0.25F * (roll(h, 1, 0) + roll(h, -1, 0)) - 0.5F * (roll(w, -1, 0) - roll(w, 1, 0));
        w = 0.25F * (roll(w, 1, 0) + roll(w, -1, 0)) - 0.5F * (roll(sqr(h), -1, 0) - roll(h, 1, 0));
        h = next;
    }
    CHECK(h.node()->type.shape[0].terms().size() == 1);
    require_gradient([](const auto& x) { return roll(x[0], 2, 1); }, {sample(float64, {2, 5})}, true);
    CHECK_THROWS_AS(roll(v, 1, 1), IndexError);
}

TEST_CASE("stack puts parts side by side along a new axis") {
    const Array a = sample(float32, {2, 3}), b = sample(float32, {2, 3}, 2);
    const Expr x = matrix("x"), y = matrix("y");
    for (const int axis : {0, 1, 2, -1, -3}) {
        const Array r = evaluated(stack({x, y, x}, axis), {x, y}, {a, b});
        const int at = axis < 0 ? axis + 3 : axis;
        Dims shape{2, 3};
        shape.insert(shape.begin() + at, 3);
        REQUIRE(r.shape() == shape);
        for (std::int64_t i = 0; i < 2; ++i)
            for (std::int64_t j = 0; j < 3; ++j)
                for (std::int64_t k = 0; k < 3; ++k) {
                    const std::int64_t place = at == 0   ? (k * 2 + i) * 3 + j
                                               : at == 1 ? (i * 3 + k) * 3 + j
                                                         : (i * 3 + j) * 3 + k;
                    REQUIRE(r.at(place) == (k == 1 ? b : a).at(i * 3 + j));
                }
    }
    require_gradient(
        [](const auto& v) {
            return stack({v[0], v[1]}, 1);
        },
        {sample(float64, {3}), sample(float64, {3}, 2)});
    CHECK_THAT(message_of<ShapeError>([&] {
                   stack({x, vector("v")});
               }),
               ContainsSubstring("stack of \"x\"") && ContainsSubstring("the same shape"));
    CHECK_THAT(message_of<TypeError>([&] {
                   stack({x, matrix("bytes", uint8)});
               }),
               ContainsSubstring("float32 and uint8 do not mix"));
    CHECK_THROWS_AS(stack(std::vector<Expr>{}), ShapeError);
}

TEST_CASE("repeat gives each element several times") {
    const Array a = sample(float32, {2, 3});
    const Expr x = matrix("x");
    for (const std::int64_t count : {0, 1, 3}) {
        const Array down = evaluated(repeat(x, count, 0), {x}, {a}),
                    right = evaluated(repeat(x, count, 1), {x}, {a});
        REQUIRE(down.shape() == Dims{2 * count, 3});
        REQUIRE(right.shape() == Dims{2, 3 * count});
        for (std::int64_t i = 0; i < 2 * count; ++i)
            for (std::int64_t j = 0; j < 3; ++j) REQUIRE(down.at(i * 3 + j) == a.at(i / count * 3 + j));
        for (std::int64_t i = 0; i < 2; ++i)
            for (std::int64_t j = 0; j < 3 * count; ++j)
                REQUIRE(right.at(i * 3 * count + j) == a.at(i * 3 + j / count));
    }
    require_gradient([](const auto& v) { return repeat(v[0], 2, 0); }, {sample(float64, {3, 2})});
    CHECK_THROWS_AS(repeat(x, -1, 0), ShapeError);
}

TEST_CASE("silu and gelu") {
    const Expr x = vector("x", float64);
    const Array a = Array(std::vector<double>{-40, -5, -1, 0, 0.5, 2, 30});
    const Array s = evaluated(silu(x), {x}, {a}), g = evaluated(gelu(x), {x}, {a});
    for (std::int64_t i = 0; i < a.size(); ++i) {
        const double v = a.at(i);
        CHECK(s.at(i) == Approx(v / (1 + std::exp(-v))).margin(1e-300));
        CHECK(g.at(i) == Approx(v / 2 * std::erfc(-v / std::sqrt(2.0))).margin(1e-300));
    }
    for (const bool symbolic : {false, true}) {
        require_gradient([](const auto& v) { return silu(v[0]); }, {sample(float64, {4})}, symbolic);
        require_gradient([](const auto& v) { return gelu(v[0]); }, {sample(float64, {4})}, symbolic);
    }
    for (const Expr& y : {silu(ivector("i")), gelu(ivector("i"))}) CHECK(y.dtype() == float32);
}
