// Scans: results by hand, index maps against the oracle, gradients, messages.
#include "ops/reduce/scan.h"

#include <cmath>

#include "ops/reduce/cumulative.h"
#include "tests/ops/arrays.h"
#include "tests/support/gradient_check.h"
#include "tests/support/nest_interpreter.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

using ScanFunction = Expr (*)(const Expr&, std::optional<int>, ScanOptions, Where);
const std::vector<ScanOptions> all_options = {
    {}, {.exclusive = true}, {.reverse = true}, {.exclusive = true, .reverse = true}};

}  // namespace

TEST_CASE("values of scans") {
    const Expr x = matrix("x", float64), i = vector("i", int8), b = vector("b", boolean);
    const Array v = doubles({1, 2, 3, 4, 5, 6}, {2, 3});
    using Numbers = std::vector<double>;
    CHECK(numbers(cumsum(x, 1), x, v) == Numbers{1, 3, 6, 4, 9, 15});
    CHECK(numbers(cumsum(x, 0), x, v) == Numbers{1, 2, 3, 5, 7, 9});
    CHECK(numbers(cumsum(x, -2), x, v) == Numbers{1, 2, 3, 5, 7, 9});
    CHECK(numbers(cumsum(x), x, v) == Numbers{1, 3, 6, 10, 15, 21});
    CHECK(numbers(cumprod(x, 1), x, v) == Numbers{1, 2, 6, 4, 20, 120});
    CHECK(numbers(cumsum(x, 1, {.exclusive = true}), x, v) == Numbers{0, 1, 3, 0, 4, 9});
    CHECK(numbers(cumsum(x, 1, {.reverse = true}), x, v) == Numbers{6, 5, 3, 15, 11, 6});
    CHECK(numbers(cumprod(x, 1, {.exclusive = true, .reverse = true}), x, v) == Numbers{6, 3, 1, 30, 6, 1});
    CHECK(cumsum(x).shape_text() == "[x.0*x.1]");
    CHECK(numbers(cumsum(i, 0), i, Array(std::vector<std::int8_t>{100, 100, -50})) == Numbers{100, 200, 150});
    CHECK(numbers(cumsum(b, 0), b, Array(std::vector<bool>{true, false, true})) == Numbers{1, 1, 2});
}

TEST_CASE("dtypes of scans") {
    const auto x = [](DType t) { return input(t, Dims{2}, "x"); };
    for (const DType t : {boolean, int8, int16, int32, int64}) CHECK(cumsum(x(t), 0).dtype() == int64);
    for (const DType t : {uint8, uint16, uint32, uint64}) CHECK(cumprod(x(t), 0).dtype() == uint64);
    for (const DType t : {float16, bfloat16, float32, float64}) CHECK(cumsum(x(t), 0).dtype() == t);
    for (const DType t : {float32, float64}) CHECK(logcumsumexp(x(t), 0).dtype() == t);
}

TEST_CASE("index maps of scans along all axes, of all dtypes") {
    for (const ScanOptions& options : all_options) {
        for (const ScanFunction scan : {ScanFunction(cumsum), ScanFunction(cumprod)}) {
            for (int axis = 0; axis < 3; ++axis)
                for (const Dims& shape : {Dims{3, 4, 2}, Dims{1, 1, 1}, Dims{2, 1, 3}, Dims{2, 0, 3}})
                    require_nest_matches(scan(tensor3("x"), axis, options, {}).node(),
                                         {sample(float32, shape)});
            for (const DType dtype : {boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
                                      float16, bfloat16, float64})
                require_nest_matches(scan(input(dtype, Dims{2, 3}, "x"), 1, options, {}).node(),
                                     {sample(dtype, {2, 3})});
        }
        for (int axis = 0; axis < 2; ++axis)
            for (const Dims& shape : {Dims{3, 4}, Dims{1, 1}, Dims{2, 0}}) {
                const Attributes attributes = Scan{axis, options.exclusive, options.reverse}.attributes();
                const NodePtr a = matrix("a").node(), b = matrix("b").node();
                require_nest_matches(make_node(cummax_op(), {a}, attributes), {sample(float32, shape, 2)});
                const Array of_a = sample(float32, shape, 3), of_b = sample(float32, shape, 4);
                SymbolValues symbols;
                require_nest_matches(make_node(recurrence_op(), {a, b}, attributes), {of_a, of_b});
            }
    }
}

TEST_CASE("logcumsumexp keeps to the range of its dtype") {
    const Expr x = vector("x", float64);
    const auto near = [](const std::vector<double>& got, const std::vector<double>& expected) {
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            INFO("element " << i);
            if (std::isfinite(expected[i]))
                CHECK(got[i] == Approx(expected[i]));
            else
                CHECK((got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]))));
        }
    };
    const double two = std::log(2.0), nan = std::nan("");
    const auto check = [&](const std::vector<double>& v, const std::vector<double>& expected,
                           ScanOptions options = {}) {
        const Array value = doubles(v, {static_cast<std::int64_t>(v.size())});
        near(numbers(logcumsumexp(x, 0, options), x, value), expected);
        near(evaluated_typed(logcumsumexp(x, 0, options), {x}, {value}).to_vector<double>(), expected);
    };
    check({1000, 1000, -1000}, {1000, 1000 + two, 1000 + two});
    check({-1000, -1000, 1000, 1000}, {-1000, -1000 + two, 1000, 1000 + two});
    check({-infinity, -infinity, -1000}, {-infinity, -infinity, -1000});
    check({0, infinity, 0}, {0, infinity, infinity});
    check({0, nan, 0}, {0, nan, nan});
    check({5, 5, 5}, {-infinity, 5, 5 + two}, {.exclusive = true});
    check({5, 5, 5}, {5 + two, 5, -infinity}, {.exclusive = true, .reverse = true});
    check({}, {});
}

TEST_CASE("gradients of scans") {
    const Array x = doubles({0.5, -1, 2, 3, 0.25, -0.75, 1.5, 2.5, -2, 4, 1, -3}, {2, 3, 2}),
                y = doubles({1.5, 0.5, -0.25, 1, -1, 2, 0.75, -0.5, 1.25, 0.5, -2, 1}, {2, 3, 2});
    for (const ScanOptions& options : all_options) {
        for (const ScanFunction scan :
             {ScanFunction(cumsum), ScanFunction(cumprod), ScanFunction(logcumsumexp)})
            for (const int axis : {0, 1, 2}) {
                if (scan == ScanFunction(logcumsumexp) && options.exclusive) continue;  // -inf has no slope
                require_gradient([&](const auto& v) { return scan(v[0], axis, options, {}); }, {x},
                                 axis == 1);
            }
        require_gradient(
            [&](const auto& v) {
                return Expr(make_node(recurrence_op(), {v[0].node(), v[1].node()},
                                      Scan{1, options.exclusive, options.reverse}.attributes()));
            },
            {x, y});
        require_gradient([&](const auto& v) { return exp(logcumsumexp(v[0], 1, options)); }, {x}, false,
                         1e-5);
    }
}

TEST_CASE("the gradient of cumprod is right where elements are zero, and so is that of the gradient") {
    const Array zeros = doubles({2, 0, 3, 0, 0, 5, 1, 2, 4, 7, 0, 0}, {3, 4});
    for (const ScanOptions& options : all_options) {
        require_gradient([&](const auto& v) { return cumprod(v[0], 1, options); }, {zeros});
        require_gradient([&](const auto& v) { return grad(sum(sqr(cumprod(v[0], 1, options))), v[0]); },
                         {zeros}, false, 1e-4);
    }
    const Expr x = vector("x");
    CHECK(numbers(grad(sum(cumprod(x, 0)), x), x, Array(std::vector<float>{2, 0, 3})) ==
          std::vector<double>{1, 8, 0});
}

TEST_CASE("the gradient of logcumsumexp is no NaN where nothing was added up") {
    const Expr x = vector("x", float64);
    const Array v = doubles({-infinity, -infinity, -1000, 1000}, {4});
    CHECK(numbers(grad(logcumsumexp(x, 0)[3], x), x, v) == std::vector<double>{0, 0, 0, 1});
    CHECK(numbers(grad(logcumsumexp(x, 0)[1], x), x, v) == std::vector<double>{0, 0, 0, 0});
    CHECK(numbers(grad(sum(logcumsumexp(x, 0)), x), x, v) == std::vector<double>{0, 0, 1, 1});
}

TEST_CASE("messages of scans") {
    const Expr x = matrix("x");
    CHECK_THAT(message_of<IndexError>([&] { cumsum(x, 2); }),
               ContainsSubstring("cumsum of \"") &&
                   ContainsSubstring("there is no axis 2; axes are 0 and 1, or -1 and -2"));
    CHECK_THAT(message_of<IndexError>([&] { cumprod(scalar("s"), 0); }),
               ContainsSubstring("a scalar has no axes"));
    CHECK_THAT(message_of<TypeError>([&] { logcumsumexp(matrix("i", int32), 0); }),
               ContainsSubstring("takes float32 or float64"));
    CHECK(cumsum(scalar("s")).shape_text() == "[1]");
}
