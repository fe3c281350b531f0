// dot: all combinations of ranks, gradients, messages.
#include "ops/linear/contract.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("index maps of dot") {
    struct Case {
        Dims a, b;
    };
    for (const Case& c : std::vector<Case>{{{3}, {3}},
                                           {{2, 3}, {3}},
                                           {{3}, {3, 4}},
                                           {{2, 3}, {3, 4}},
                                           {{1, 1}, {1, 1}},
                                           {{0, 3}, {3, 2}},
                                           {{2, 0}, {0, 3}},
                                           {{5, 7}, {7, 1}},
                                           {{0}, {0}}})
        for (const DType dtype : {float32, float64}) {
            const Expr a = input(dtype, static_cast<int>(c.a.size()), "a"),
                       b = input(dtype, static_cast<int>(c.b.size()), "b");
            const Expr y = dot(a, b);
            REQUIRE(y.node()->op == dot_op());
            CHECK(y.node()->op->equalities(*y.node()).size() == 1);
            require_nest_matches(y.node(), {sample(dtype, c.a), sample(dtype, c.b, 2)});
        }
}

TEST_CASE("values of dot") {
    const Expr a = matrix("a"), b = matrix("b");
    const Array x = floats({1, 2, 3, 4}, {2, 2}), y = floats({5, 6, 7, 8}, {2, 2});
    CHECK(numbers(evaluated(dot(a, b), {a, b}, {x, y})) == std::vector<double>{19, 22, 43, 50});
    CHECK(numbers(evaluated(dot(a, b[0]), {a, b}, {x, y})) == std::vector<double>{17, 39});
    CHECK(numbers(evaluated(dot(a[0], b), {a, b}, {x, y})) == std::vector<double>{19, 22});
    CHECK(evaluated(dot(a[0], b[0]), {a, b}, {x, y}).item<double>() == 17);
}

TEST_CASE("dot of higher ranks sums over a's last and b's second-last axis") {
    const Array x = sample(float32, {2, 3, 4}), y = sample(float32, {5, 4, 6}, 2);
    const Expr a = tensor3("a"), b = tensor3("b");
    const Array r = evaluated(dot(a, b), {a, b}, {x, y});
    REQUIRE(r.shape() == Dims{2, 3, 5, 6});
    double expected = 0;
    for (int k = 0; k < 4; ++k) expected += x.at((1 * 3 + 2) * 4 + k) * y.at((3 * 4 + k) * 6 + 5);
    CHECK(r.at(((1 * 3 + 2) * 5 + 3) * 6 + 5) == expected);
    const Expr m = matrix("m"), v = vector("v");
    CHECK(evaluated(dot(a, m), {a, m}, {x, sample(float32, {4, 2})}).shape() == Dims{2, 3, 2});
    CHECK(evaluated(dot(a, v), {a, v}, {x, sample(float32, {4})}).shape() == Dims{2, 3});
    CHECK(evaluated(dot(v, b), {v, b}, {sample(float32, {4}), y}).shape() == Dims{5, 6});
}

TEST_CASE("gradients of dot") {
    struct Case {
        Dims a, b;
    };
    for (const bool symbolic : {false, true})
        for (const Case& c : std::vector<Case>{
                 {{3}, {3}}, {{2, 3}, {3}}, {{3}, {3, 4}}, {{2, 3}, {3, 4}}, {{2, 2, 3}, {2, 3, 2}}})
            require_gradient([](const auto& v) { return dot(v[0], v[1]); },
                             {sample(float64, c.a), sample(float64, c.b, 2)}, symbolic);
    require_gradient([](const auto& v) { return dot(v[0], v[0]); }, {sample(float64, {3, 3})});
}

TEST_CASE("messages of dot") {
    const Expr x = input(float32, Dims{2, 3}, "x"), bytes = input(int8, Dims{3, 2}, "bytes"),
               wide = input(float64, Dims{3}, "wide");
    CHECK_THAT(message_of<TypeError>([&] { dot(x, bytes); }),
               ContainsSubstring("\"x\" (float32 [2, 3])") && ContainsSubstring("\"bytes\" (int8 [3, 2])") &&
                   ContainsSubstring("not in int8; write cast(bytes, float32)"));
    CHECK_THAT(message_of<TypeError>([&] { dot(x, wide); }),
               ContainsSubstring("float32 and float64 do not mix; cast one, as in cast(x, float64)"));
    CHECK_THROWS_AS(dot(cast(x, float16), cast(wide, float16)), TypeError);
    CHECK_THAT(message_of<ShapeError>([&] { dot(x, x); }),
               ContainsSubstring("axis 1 of the first operand has length 3 and axis 0 of "
                                 "the second operand has length 2"));
    CHECK_THROWS_AS(dot(input(float32, Dims{2, 2, 5}, "t"), input(float32, Dims{2, 3, 4}, "u")), ShapeError);
    CHECK_THAT(message_of<ShapeError>([&] { dot(x, 2.0f); }), ContainsSubstring("write a * b"));
    // Images that nobody has flattened.
    const Expr images = input(float32, {-1, 1, 28, 28}, "images"), w = input(float32, {784, 10}, "w");
    CHECK_THAT(message_of<ShapeError>([&] { dot(images, w); }),
               ContainsSubstring("axis 3 of \"images\" has length 28 and axis 0 of \"w\" has length 784") &&
                   ContainsSubstring("dot(flatten(x, 2), w)"));
    CHECK(dot(flatten(images, 2), w).rank() == 2);
}
