// Arithmetic of host arrays: what the operators on expressions say, at once.
#include "bitale/array_ops.h"

#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "bitale/ops.h"
#include "ops/oracle/typed.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

Array value_of(const Expr& x) { return evaluate({x.node()}, {})[0]; }

template <class E, class F>
std::string array_error(F&& f) {
    try {
        f();
    } catch (const E& e) {
        return e.what();
    }
    return "";
}

}  // namespace

TEST_CASE("arrays add, subtract, multiply, divide and compare element by element") {
    const Array a = {{1.F, 2.F}, {3.F, 4.F}}, b = {{10.F, 20.F}, {30.F, 40.F}};
    CHECK(same(a + b, {{11.F, 22.F}, {33.F, 44.F}}));
    CHECK(same(b - a, {{9.F, 18.F}, {27.F, 36.F}}));
    CHECK(same(a * b, {{10.F, 40.F}, {90.F, 160.F}}));
    CHECK(same(b / a, {{10.F, 10.F}, {10.F, 10.F}}));
    CHECK(same(b % a, {{0.F, 0.F}, {0.F, 0.F}}));
    CHECK(same(-a, {{-1.F, -2.F}, {-3.F, -4.F}}));
    CHECK(same(a < b, {{true, true}, {true, true}}));
    CHECK(same(a >= b, {{false, false}, {false, false}}));
    CHECK(same(a <= 2, {{true, true}, {false, false}}));
    CHECK(same(3 < a, {{false, false}, {false, true}}));
    CHECK(same(eq(a, 3), {{false, false}, {true, false}}));
    CHECK(same(neq(a, a), {{false, false}, {false, false}}));
}

TEST_CASE("numbers take the type of the array, rows broadcast") {
    const Array a = {{1.F, 2.F}, {3.F, 4.F}}, row = {10.F, 20.F};
    CHECK(same(a + row, {{11.F, 22.F}, {13.F, 24.F}}));
    CHECK(same(row + a, {{11.F, 22.F}, {13.F, 24.F}}));
    CHECK(same(a * 0.5, {{0.5F, 1.F}, {1.5F, 2.F}}));
    CHECK(same(1 - a, {{0.F, -1.F}, {-2.F, -3.F}}));
    CHECK(same(1 / Array{2.F, 4.F}, {0.5F, 0.25F}));
    CHECK((a + 1).dtype() == float32);
    CHECK((Array{1, 2} / Array{2, 2}).dtype() == float32);
    CHECK((Array{1, 2} + Array{0.5F, 0.5F}).dtype() == float32);
    CHECK(same(Array{std::numeric_limits<int>::max()} + 1, {std::numeric_limits<int>::min()}));
    CHECK((Array(float32, {0, 3}) + Array{1.F, 2.F, 3.F}).shape() == Dims{0, 3});
    const Array one = Array(2.0) * Array(3.0);  // numbers, too
    CHECK(double(one) == 6);
    double total = 1;
    total += one;
    CHECK(total == 7);
    CHECK(total + double(one * 2) == 19);
}

TEST_CASE("every type gives what expressions give") {
    for (int i = 0; i < dtype_count; ++i)
        for (int j = 0; j < dtype_count; ++j) {
            const auto s = static_cast<DType>(i), t = static_cast<DType>(j);
            const Array a = Array({{1, 0, 1}, {5, 7, 100}}).as(s), b = Array({{1, 1, 0}, {3, 2, 200}}).as(t);
            INFO(name_of(s) << " and " << name_of(t));
            const auto outcome = [](auto&& f) {
                try {
                    return f();
                } catch (const TypeError&) {
                    return Array(std::vector<bool>{});
                }
            };
            CHECK(same(outcome([&] { return a + b; }), outcome([&] { return value_of(Expr(a) + Expr(b)); })));
            CHECK(same(outcome([&] { return a / b; }), outcome([&] { return value_of(Expr(a) / Expr(b)); })));
            CHECK(same(outcome([&] { return a < b; }), outcome([&] { return value_of(Expr(a) < Expr(b)); })));
        }
}

TEST_CASE("arrays that do not fit say so, with the line") {
    const Array a = {1.F, 2.F}, b = {1.F, 2.F, 3.F}, bytes = Array{1, 2}.as(uint8);
    CHECK_THAT(array_error<ShapeError>([&] { a + b; }), ContainsSubstring("array_ops_test.cpp:") &&
                                                            ContainsSubstring("[2]") &&
                                                            ContainsSubstring("[3]"));
    CHECK_THAT(array_error<TypeError>([&] { bytes - 128; }), ContainsSubstring("cast"));
    CHECK_THAT(array_error<TypeError>([&] { a.as(float16) + a; }), ContainsSubstring("float16"));
    CHECK_THROWS_AS(double(a < 1.5), ShapeError);  // of several numbers there is no one answer
}

TEST_CASE("arrays are joined along an axis, and stacked") {
    const Array a = {{1, 2}, {3, 4}}, b = {{5, 6}};
    CHECK(same(concatenate({a, b}), {{1, 2}, {3, 4}, {5, 6}}));
    CHECK(same(concatenate({a, a}, 1), {{1, 2, 1, 2}, {3, 4, 3, 4}}));
    CHECK(same(concatenate(std::vector<Array>{b}), b));
    CHECK(same(stack({b, b}), {{{5, 6}}, {{5, 6}}}));
    CHECK(same(stack({Array(1), Array(2)}), {1, 2}));
    CHECK_THROWS_AS(concatenate({a, b}, 1), ShapeError);
    CHECK_THROWS_AS(concatenate({a, b}, 2), IndexError);
    CHECK_THROWS_AS(concatenate(std::vector<Array>{}), Error);
    CHECK_THROWS_AS(concatenate({a, a.as(float32)}), TypeError);
    CHECK_THROWS_AS(stack({a, b}), ShapeError);
    CHECK_THROWS_AS(stack({}), ShapeError);
    const Expr x = matrix("x");  // expressions are joined as before
    CHECK(concatenate({x, x}).rank() == 2);
}

TEST_CASE("one axis is a number") {
    const Array a = {{1.F, 2.F, 3.F}, {4.F, 5.F, 9.F}};
    CHECK(same(value_of(mean(Expr(a), 1)), {2.F, 6.F}));
    CHECK(same(value_of(mean(Expr(a), 1)), value_of(mean(Expr(a), {1}))));
    CHECK(same(value_of(max(Expr(a), -1, {.keepdims = true})), {{3.F}, {9.F}}));
    CHECK(value_of(sum(Expr(a), {})).shape().empty());
    CHECK(same(value_of(sum(Expr(a), {0, 1})), Array(24.F)));
    CHECK(same(value_of(argmax(Expr(a), std::vector<int>{0})),
               {std::int64_t{1}, std::int64_t{1}, std::int64_t{1}}));
}

TEST_CASE("the sum and the mean of host arrays are numbers") {
    const Array a = {{1.F, 2.F}, {3.F, 4.5F}};
    CHECK(sum(a) == 10.5);
    CHECK(mean(a) == 2.625);
    static_assert(std::is_same_v<decltype(sum(a)), double>);
    static_assert(std::is_same_v<decltype(mean(a)), double>);
    // Empty ones, as in NumPy, and numbers.
    CHECK(sum(Array()) == 0);
    CHECK(std::isnan(mean(Array())));
    CHECK(sum(Array(int32, {0, 3})) == 0);
    CHECK(std::isnan(mean(Array(int32, {0, 3}))));
    CHECK(sum(Array(7)) == 7);
    // Every dtype.
    for (const DType dtype : {boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16,
                              bfloat16, float32, float64}) {
        INFO(name_of(dtype));
        const Array x = Array{1, 0, 1, 1}.as(dtype);
        CHECK(sum(x) == 3);
        CHECK(mean(x) == 0.75);
    }
    // Neither in the dtype of the elements nor, of integers, in double.
    CHECK(sum(Array(std::vector<std::int8_t>(600, 127))) == 76200);
    CHECK(sum(Array(std::vector<float>(1 << 25, 1.F))) == 1 << 25);
    CHECK(mean(Array(std::vector<float>(3, 3e38F))) == double(3e38F));
    constexpr std::int64_t large = std::int64_t{1} << 53;
    CHECK(sum(Array{large, std::int64_t{1}, std::int64_t{1}, std::int64_t{1} - large}) == 3);
    constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();
    CHECK(sum(Array{largest, largest}) == 36893488147419103232.0);
    CHECK(sum(Array{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::min()}) ==
          -18446744073709551616.0);
    // What is not finite stays so.
    const float infinity = std::numeric_limits<float>::infinity();
    CHECK(sum(Array{1.F, infinity}) == infinity);
    CHECK(std::isnan(sum(Array{-infinity, infinity})));
    // Expressions are what they were.
    static_assert(std::is_same_v<decltype(sum(Expr(a))), Expr>);
    static_assert(std::is_same_v<decltype(sum(Expr(a), 1)), Expr>);
    static_assert(std::is_same_v<decltype(mean(shared(a))), Expr>);
    CHECK_THAT(array_error<GraphError>([] {
                   Array from = {1.F};
                   const Array to = std::move(from);
                   sum(from);
               }),
               ContainsSubstring("moved from"));
}
