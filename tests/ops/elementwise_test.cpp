// Every row of the elementwise table: gradients, traits, dtype rules, the corners of integers and NaN.
#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"

using namespace bitale;
using namespace bitale::test;

namespace {

// Numbers spread over [low, high], never a round one: no test may sit on a kink.
std::vector<double> draws(std::size_t count, double low, double high, unsigned seed) {
    std::vector<double> r;
    double x = 0.137 + 0.211 * seed;
    for (std::size_t i = 0; i < count; ++i) {
        x = std::fmod(x + 0.6180339887498949, 1.0);
        r.push_back(low + (high - low) * x);
    }
    return r;
}

bool selects(const Op* op) { return op == where_op(); }

// Operands of the dtype for a row; a condition is boolean.
std::vector<Expr> operands_of(const Op* op, DType dtype, const Dims& shape) {
    std::vector<Expr> r;
    for (int i = 0; i < op->arity; ++i)
        r.push_back(input(selects(op) && i == 0 ? boolean : dtype, shape,
                          std::string(1, static_cast<char>('a' + i))));
    return r;
}

template <class T>
T one(const Expr& x) {
    REQUIRE(x.dtype() == dtype_of<T>());
    return evaluated(x).item<T>();
}

template <class T>
Expr typed(T x) {
    return constant(Array(x));
}

const double no_number = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("the gradient of every differentiable row is its finite difference") {
    int differentiable = 0;
    for (const Op* op : elementwise_ops()) {
        if (!computes_on(op, float64)) continue;
        if (elementwise(op, operands_of(op, float64, {2}), {}).dtype() != float64) continue;
        ++differentiable;
        INFO(op->name);
        for (const bool symbolic : {false, true}) {
            std::vector<Array> values;
            for (int i = 0; i < op->arity; ++i) {
                if (selects(op) && i == 0)
                    values.push_back(
                        Array(std::vector<bool>{true, false, false, true, false, true}).reshaped({2, 3}));
                else
                    values.push_back(
                        Array(draws(6, op->map->low, op->map->high, static_cast<unsigned>(i)), {2, 3}));
            }
            const auto f = [op](const std::vector<Expr>& x) { return elementwise(op, x, {}); };
            require_gradient(f, values, symbolic);
            // Each operand in turn as a scalar, which is repeated: its gradient is a sum.
            for (std::size_t i = 0; op->arity > 1 && i < values.size(); ++i) {
                if (!is_float(values[i].dtype())) continue;
                std::vector<Array> mixed = values;
                mixed[i] = Array(draws(1, op->map->low, op->map->high, 5)[0]);
                require_gradient(f, mixed, symbolic);
                // ... and as a row along the other's last axis.
                mixed[i] = Array(draws(3, op->map->low, op->map->high, 6));
                if (!symbolic) require_gradient(f, mixed, symbolic);
            }
        }
    }
    CHECK(differentiable >= 40);
}

TEST_CASE("rows keep what their traits promise") {
    for (const Op* op : elementwise_ops()) {
        INFO(op->name);
        CHECK(op->map->cost > 0);
        CHECK(!op->map->text.empty());
        for (const DType dtype : {float64, int8, uint8, int64}) {
            if (!computes_on(op, dtype)) continue;
            INFO(name_of(dtype));
            const auto drawn = [&](unsigned seed) {
                return Array(draws(32, is_float(dtype) ? op->map->low : 0, op->map->high, seed)).as(dtype);
            };
            if (op->map->maps_zero_to_zero)
                CHECK(evaluated(elementwise(op, {Array(0).as(dtype)}, {})).at(0) == 0);
            if (op->map->commutative)
                CHECK(same(evaluated(elementwise(op, {drawn(0), drawn(1)}, {})),
                           evaluated(elementwise(op, {drawn(1), drawn(0)}, {}))));
            if (op->map->non_decreasing) {
                std::vector<double> sorted = drawn(2).to_vector<double>();
                std::sort(sorted.begin(), sorted.end());
                const Array y = evaluated(elementwise(op, {Array(sorted).as(dtype)}, {}));
                for (std::int64_t i = 1; i < y.size(); ++i) CHECK(y.at(i - 1) <= y.at(i));
            }
        }
    }
}

TEST_CASE("every row has a result for each dtype that it computes on, and a TypeError for the others") {
    for (const Op* op : elementwise_ops())
        for (const DType dtype : all_dtypes) {
            INFO(op->name << " of " << name_of(dtype));
            const std::vector<Expr> x = operands_of(op, dtype, {3});
            const bool widens = !is_float(dtype) && computes_on(op, float32) && !computes_on(op, dtype) &&
                                !computes_on(op, int32);
            if (computes_on(op, dtype) || widens) {
                const Expr y = elementwise(op, x, {});
                std::vector<Array> values;
                for (const Expr& operand : x)
                    values.push_back(Array(std::vector<int>{0, 1, 2}).as(operand.dtype()));
                CHECK(evaluated(y, x, values).dtype() == y.dtype());
            } else {
                CHECK_THROWS_AS(elementwise(op, x, {"net.cpp", 7}), TypeError);
                CHECK_THROWS_WITH(elementwise(op, x, {"net.cpp", 7}),
                                  ContainsSubstring("net.cpp:7: " + op->name));
            }
        }
}

TEST_CASE("promotion of two typed operands") {
    // Rows and columns: boolean, int8..int64, uint8..uint64, float32, float64. x: a cast must be written.
    const char* const order[] = {"boolean", "int8",   "int16",  "int32",   "int64",  "uint8",
                                 "uint16",  "uint32", "uint64", "float32", "float64"};
    const char* const table[] = {"b  i1 i2 i4 i8 u1 u2 u4 u8 f4 f8", "i1 i1 i2 i4 i8 i2 i4 i8 x  f4 x",
                                 "i2 i2 i2 i4 i8 i2 i4 i8 x  f4 x",  "i4 i4 i4 i4 i8 i4 i4 i8 x  f4 x",
                                 "i8 i8 i8 i8 i8 i8 i8 i8 x  f4 x",  "u1 i2 i2 i4 i8 u1 u2 u4 u8 f4 x",
                                 "u2 i4 i4 i4 i8 u2 u2 u4 u8 f4 x",  "u4 i8 i8 i8 i8 u4 u4 u4 u8 f4 x",
                                 "u8 x  x  x  x  u8 u8 u8 u8 f4 x",  "f4 f4 f4 f4 f4 f4 f4 f4 f4 f4 f8",
                                 "f8 x  x  x  x  x  x  x  x  f8 f8"};
    const auto short_name = [](std::optional<DType> t) {
        if (!t) return std::string("x");
        if (*t == boolean) return std::string("b");
        return (is_float(*t) ? "f" : is_signed_integer(*t) ? "i" : "u") + std::to_string(bytes_of(*t));
    };
    for (std::size_t i = 0; i < 11; ++i) {
        std::istringstream row(table[i]);
        for (std::size_t j = 0; j < 11; ++j) {
            std::string expected;
            row >> expected;
            const DType a = dtype_named(order[i]), b = dtype_named(order[j]);
            INFO(order[i] << " and " << order[j]);
            CHECK(short_name(promote(a, b)) == expected);
            const Expr x = vector("x", a), y = vector("y", b);
            if (expected == "x") {
                CHECK_THROWS_WITH(
                    x + y, ContainsSubstring("add of ") && ContainsSubstring("do not mix; write cast("));
                continue;
            }
            CHECK((x + y).dtype() == *promote(a, b));
            CHECK((x < y).dtype() == boolean);
            CHECK((x / y).dtype() == (is_float(*promote(a, b)) ? *promote(a, b) : float32));
        }
    }
    CHECK(!promote(float16, float32));
    CHECK(!promote(bfloat16, bfloat16));
    CHECK_THROWS_WITH(vector("h", float16) + vector("x"),
                      ContainsSubstring("storage only; compute on cast(h, float32)"));
}

TEST_CASE("promotion=theano is NumPy's table") {
    Options o = options();
    o.promotion = Options::Promotion::theano;
    const ScopedOptions theano(o);
    const auto common = [](DType a, DType b) { return (vector("x", a) + vector("y", b)).dtype(); };
    for (const DType i : {int8, int16, int32, int64}) {
        CHECK(common(uint64, i) == float64);
        CHECK(common(i, float64) == float64);
    }
    CHECK(common(int8, float32) == float32);
    CHECK(common(uint16, float32) == float32);
    CHECK(common(int32, float32) == float64);
    CHECK(common(uint64, float32) == float64);
    CHECK(common(int32, uint32) == int64);
    CHECK(common(float32, float64) == float64);
    CHECK(common(boolean, uint8) == uint8);
    // A literal counts as the smallest signed integer where the other operand could not hold the difference.
    CHECK((vector("x", uint8) - 128).dtype() == int16);
    CHECK((vector("x", uint8) - 1).dtype() == int16);
    CHECK((1 - vector("x", uint32)).dtype() == int64);
    CHECK((vector("x", uint64) - 1).dtype() == float64);
    CHECK((vector("x", uint8) + 3).dtype() == uint8);
    CHECK((vector("x", uint8) - 0.5).dtype() == float32);
    CHECK(one<std::int16_t>(typed(std::uint8_t{100}) - 128) == -28);
    CHECK_THROWS_AS(vector("h", float16) + vector("x"), TypeError);
}

TEST_CASE("integers without a common dtype are compared exactly, whatever the promotion") {
    const auto check = [](std::uint64_t u, std::int64_t i) {
        INFO(u << " and " << i);
        const bool less = i >= 0 && u < static_cast<std::uint64_t>(i),
                   equal = i >= 0 && u == static_cast<std::uint64_t>(i);
        const Expr a = typed(u), b = typed(i);
        CHECK(one<bool>(lt(a, b)) == less);
        CHECK(one<bool>(le(a, b)) == (less || equal));
        CHECK(one<bool>(gt(a, b)) == !(less || equal));
        CHECK(one<bool>(ge(a, b)) == !less);
        CHECK(one<bool>(eq(a, b)) == equal);
        CHECK(one<bool>(neq(a, b)) == !equal);
        CHECK(one<bool>(lt(b, a)) == !(less || equal));
        CHECK(one<bool>(le(b, a)) == !less);
        CHECK(one<bool>(gt(b, a)) == less);
        CHECK(one<bool>(ge(b, a)) == (less || equal));
        CHECK(one<bool>(eq(b, a)) == equal);
        CHECK(one<bool>(neq(b, a)) == !equal);
        CHECK(one<bool>(logical_and(a, b)) == (u != 0 && i != 0));
        CHECK(one<bool>(logical_or(b, a)) == (u != 0 || i != 0));
    };
    for (const Options::Promotion promotion : {Options::Promotion::strict, Options::Promotion::theano}) {
        Options o = options();
        o.promotion = promotion;
        const ScopedOptions scoped(o);
        constexpr auto top = std::numeric_limits<std::int64_t>::max();
        for (const std::uint64_t u :
             {std::uint64_t{0}, std::uint64_t{1}, static_cast<std::uint64_t>(top) - 1,
              static_cast<std::uint64_t>(top), static_cast<std::uint64_t>(top) + 1, ~std::uint64_t{0}})
            for (const std::int64_t i :
                 {-top - 1, -top, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, top})
                check(u, i);
        CHECK(one<bool>(lt(typed(std::int8_t{-1}), typed(~std::uint64_t{0}))));
    }
    CHECK_THROWS_WITH(vector("u", uint64) + lvector("i"),
                      ContainsSubstring("uint64 and int64 do not mix; write cast(u, int64)"));
}

TEST_CASE("unsigned dtypes and literals whose difference would wrap") {
    CHECK_THROWS_WITH(vector("x", uint8) - 128,
                      ContainsSubstring("may wrap; write cast(x, int16) - 128, or x - cast(128, uint8)"));
    CHECK_THROWS_WITH(1 - vector("x", uint16),
                      ContainsSubstring("write 1 - cast(x, int32), or cast(1, uint16) - x"));
    CHECK_THROWS_WITH(vector("x", uint32) - 1, ContainsSubstring("cast(x, int64) - 1"));
    CHECK((vector("x", uint8) - 0).dtype() == uint8);
    CHECK((255 - vector("x", uint8)).dtype() == uint8);  // an inverted image
    CHECK((vector("x", uint8) - 0.5).dtype() == float32);
    CHECK((vector("x", int8) - 100).dtype() == int8);
    CHECK(one<std::uint8_t>(typed(std::uint8_t{3}) - cast(5, uint8)) == 254);
    CHECK(one<std::int16_t>(cast(typed(std::uint8_t{3}), int16) - 5) == -2);
}

TEST_CASE("literals take the dtype of what they meet") {
    CHECK((vector("x") / 128.0).dtype() == float32);
    CHECK((vector("x", float64) * 2).dtype() == float64);
    CHECK((vector("x", uint8) + 3).dtype() == uint8);
    CHECK((vector("x", int8) / 128).dtype() == float32);  // 128 is a float32 here, not an int8
    CHECK((vector("x", uint8) * 0.5).dtype() == float32);
    CHECK((vector("x", uint8) < 0.5).dtype() == boolean);
    CHECK((vector("x", boolean) + 1).dtype() == int32);
    CHECK(where(vector("c", boolean), 1.0, 0.0).dtype() == float32);
    CHECK(where(vector("c", uint8), vector("x", int16), 0).dtype() == int16);
    CHECK((1 + vector("x", int64) * 2).dtype() == int64);
    CHECK_THROWS_WITH(vector("x", uint8) - 300, ContainsSubstring("the literal 300 does not fit in uint8"));
    CHECK_THROWS_WITH(
        vector("data", uint8) + 300,
        ContainsSubstring("add of \"data\" (uint8 [data.0]) at ") &&
            ContainsSubstring(" and the number 300: the literal 300 does not fit in uint8; write "
                              "cast(data, int16)"));
    CHECK_THROWS_WITH(70000 * vector("data", int8), ContainsSubstring("; write cast(data, int32)"));
    CHECK_THROWS_WITH(vector("x", float32) * 1e300, ContainsSubstring("; write cast(x, float64)"));
    CHECK_THROWS_WITH(vector("x", int64) + ~std::uint64_t{0},
                      ContainsSubstring("; cast the other operand to a wider dtype"));
    CHECK_THROWS_AS(vector("x", uint8) + -1, TypeError);
    CHECK_THROWS_AS(vector("x", int64) + ~std::uint64_t{0}, TypeError);
    CHECK_THROWS_AS(vector("x", float32) * 1e300, TypeError);
    CHECK((vector("x", float32) * infinity).dtype() == float32);
    CHECK_THROWS_AS(Expr(~std::uint64_t{0}) + Expr(-1), TypeError);
    // Arithmetic of literals is a literal, in double precision.
    const Expr third = Expr(1) / 3.0;
    CHECK(third.is_weak());
    CHECK((vector("x") * third).dtype() == float32);
    CHECK((vector("x", float64) * third).dtype() == float64);
    CHECK(evaluated(third).at(0) == 1 / 3.0);
    CHECK((1 - Expr(1)).dtype() == int32);
    CHECK(evaluated(exp(Expr(1))).at(0) == std::exp(1.0));
    // A cast ends it.
    CHECK((cast(Expr(300), uint8).dtype() == uint8 && evaluated(cast(Expr(300), uint8)).at(0) == 44));
}

TEST_CASE("integers wrap and division by zero is defined") {
    constexpr auto low8 = std::numeric_limits<std::int8_t>::min();
    constexpr auto low64 = std::numeric_limits<std::int64_t>::min();
    const auto i8 = [](int x) { return typed(static_cast<std::int8_t>(x)); };
    const auto u8 = [](int x) { return typed(static_cast<std::uint8_t>(x)); };
    const auto i64 = [](std::int64_t x) { return typed(x); };
    CHECK(one<std::int8_t>(i8(127) + i8(1)) == low8);
    CHECK(one<std::uint8_t>(u8(3) - u8(5)) == 254);
    CHECK(one<std::uint16_t>(typed(std::uint16_t{65535}) * typed(std::uint16_t{65535})) == 1);
    CHECK(one<std::int64_t>(i64(low64) * i64(-1)) == low64);
    CHECK(one<std::int8_t>(-i8(low8)) == low8);
    CHECK(one<std::int8_t>(abs(i8(low8))) == low8);
    CHECK(one<std::int8_t>(floordiv(i8(7), i8(0))) == 0);
    CHECK(one<std::int8_t>(i8(7) % i8(0)) == 0);
    CHECK(one<std::int64_t>(floordiv(i64(low64), i64(-1))) == low64);
    CHECK(one<std::int64_t>(i64(low64) % i64(-1)) == 0);
    CHECK(one<std::int8_t>(floordiv(i8(-7), i8(2))) == -4);
    CHECK(one<std::int8_t>(i8(-7) % i8(2)) == 1);
    CHECK(one<std::int8_t>(i8(7) % i8(-2)) == -1);
    CHECK(one<std::int8_t>(pow(i8(3), i8(5))) == static_cast<std::int8_t>(243));
    CHECK(one<std::int8_t>(pow(i8(0), i8(0))) == 1);
    CHECK(one<std::int8_t>(pow(i8(-1), i8(-3))) == -1);
    CHECK(one<std::int8_t>(pow(i8(2), i8(-1))) == 0);
    CHECK(one<std::int8_t>(shift_left(i8(1), i8(7))) == low8);
    CHECK(one<std::int8_t>(shift_left(i8(1), i8(8))) == 0);
    CHECK(one<std::int8_t>(shift_left(i8(1), i8(-1))) == 0);
    CHECK(one<std::int8_t>(shift_right(i8(-2), i8(100))) == -1);
    CHECK(one<std::int8_t>(shift_right(i8(-4), i8(1))) == -2);
    CHECK(one<std::uint8_t>(shift_right(u8(200), u8(8))) == 0);
    CHECK(one<std::uint8_t>(invert(u8(1))) == 254);
    CHECK(one<bool>(invert(typed(true))) == false);
    CHECK(one<bool>(typed(true) + typed(true)) == true);
    CHECK(one<float>(i8(1) / i8(4)) == 0.25F);
    CHECK(one<std::int8_t>(floor(i8(-3))) == -3);
    CHECK(one<std::int16_t>(maximum(i8(-1), u8(255))) == 255);
}

TEST_CASE("NaN, infinities and zeros") {
    const auto f = [](double x) { return typed(x); };
    const auto value = [](const Expr& x) { return evaluated(x).at(0); };
    CHECK(std::isnan(value(maximum(f(no_number), f(1)))));
    CHECK(std::isnan(value(minimum(f(1), f(no_number)))));
    CHECK(std::isnan(value(relu(f(no_number)))));
    CHECK(std::isnan(value(sign(f(no_number)))));
    CHECK(std::isnan(value(clip(f(no_number), f(0), f(1)))));
    CHECK(value(clip(f(0.5), f(2), f(1))) == 2);
    CHECK(value(where(typed(false), f(no_number), f(3))) == 3);
    CHECK(value(sigmoid(f(-infinity))) == 0);
    CHECK(value(sigmoid(f(infinity))) == 1);
    CHECK(value(softplus(f(infinity))) == infinity);
    CHECK(value(softplus(f(-1000))) == 0);
    CHECK(value(softplus(f(1000))) == 1000);
    CHECK(value(round(f(2.5))) == 2);
    CHECK(value(round(f(-3.5))) == -4);
    CHECK(value(round(f(0.49999999999999994))) == 0);
    CHECK(value(f(-1) % f(3)) == 2);
    CHECK(value(f(1) % f(-3)) == -2);
    CHECK(std::signbit(value(f(0) % f(-3))));
    CHECK(value(floordiv(f(-1), f(3))) == -1);
    CHECK(value(floordiv(f(1), f(0.1))) == 9);  // and 1 % 0.1 is nearly 0.1
    CHECK(value(floordiv(f(-1), f(-0.1))) == 9);
    CHECK(value(floordiv(f(-5e-324), f(10))) == -1);
    CHECK(value(floordiv(f(1e300), f(0.1))) == 1e301);
    CHECK(value(floordiv(f(infinity), f(-2))) == -infinity);
    CHECK(value(floordiv(f(1e300), f(1e-300))) == infinity);
    CHECK(value(floordiv(f(3), f(0))) == infinity);
    CHECK(one<bool>(isnan(f(no_number))));
    CHECK(one<bool>(isinf(f(-infinity))));
    CHECK(!one<bool>(isnan(typed(3))));
    CHECK(one<bool>(logical_and(f(no_number), f(2))));
    CHECK(!one<bool>(logical_not(f(no_number))));
    CHECK(!one<bool>(eq(f(no_number), f(no_number))));
}

TEST_CASE("ties of maximum and minimum give the whole gradient to the first operand") {
    const Expr a = vector("a", float64), b = vector("b", float64);
    const Array same_values(std::vector<double>{1, 2});
    for (const Expr& y : {maximum(a, b), minimum(a, b)}) {
        const std::vector<Array> g = evaluated(grad(sum(y), {a, b}), {a, b}, {same_values, same_values});
        CHECK(g[0].to_vector<double>() == std::vector<double>{1, 1});
        CHECK(g[1].to_vector<double>() == std::vector<double>{0, 0});
    }
}

TEST_CASE("cast converts as the arrays do, and passes gradients between floats only") {
    const Expr x = vector("x", float64);
    const Array values(std::vector<double>{-1.5, 300, no_number, 0});
    CHECK(evaluated(cast(x, uint8), {x}, {values}).to_vector<int>() == std::vector<int>{0, 255, 0, 0});
    CHECK(evaluated(cast(x, boolean), {x}, {values}).to_vector<int>() == std::vector<int>{1, 1, 1, 0});
    CHECK(evaluated(cast(cast(x, float16), float64), {x}, {Array(std::vector<double>{0.1})}).at(0) ==
          static_cast<double>(static_cast<float>(Float16(0.1F))));
    require_gradient([](const std::vector<Expr>& in) { return cast(cast(in[0], float32), float64) * in[0]; },
                     {Array(std::vector<double>{0.3, -2})});
    CHECK_THROWS_WITH(grad(sum(cast(cast(x, int32), float64)), x),
                      ContainsSubstring("only through operations without a gradient: cast (int32 [x.0])"));
    CHECK(same(cast(x, float64), x));
}

TEST_CASE("random bits are Philox's") {
    const auto bits = [](std::uint64_t key, std::uint64_t counter, std::uint64_t index) {
        return one<std::uint32_t>(philox_bits(typed(key), typed(counter), typed(index)));
    };
    CHECK(bits(0, 0, 0) == 0x6627e8d5);
    CHECK(bits(~0ULL, ~0ULL, ~0ULL) == 0x408f276d);
    CHECK(one<std::uint32_t>(philox_bits_second(typed(0ULL), typed(0ULL), typed(0ULL))) == 0xe169c58d);
    CHECK_THROWS_WITH(philox_bits(typed(1), typed(0ULL), typed(0ULL)),
                      ContainsSubstring("the operands are uint64"));
}
