// Generated code of scans against the oracle: axes, lengths, dtypes, special values, gradients.
#include <fmt/format.h>

#include <limits>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

using ScanFunction = Expr (*)(const Expr&, std::optional<int>, ScanOptions, Where);
struct ScanKind {
    const char* name;
    ScanFunction scan;
};
const std::vector<ScanKind> scan_kinds = {
    {"cumsum", cumsum}, {"cumprod", cumprod}, {"logcumsumexp", logcumsumexp}};

// All four in turn.
ScanOptions options_of(std::size_t turn) {
    return {.exclusive = turn % 2 == 1, .reverse = turn / 2 % 2 == 1};
}

}  // namespace

TEST_CASE("scans along every axis, of lengths that are known and unknown") {
    PackedCases cases(tested_device());
    Random random(1);
    std::size_t turn = 0;
    for (const Dims& shape : {Dims{2, 3, 4, 5}, Dims{1, 33, 2, 1}, Dims{9, 1, 7, 70}, Dims{3, 0, 2, 4},
                              Dims{17, 2, 1, 16}, Dims{1, 1, 1, 40}})
        for (int axis = 0; axis < 4; ++axis)
            for (const bool known : {true, false}) {
                const ScanKind& kind = scan_kinds[turn % 3];
                const ScanOptions options = options_of(turn / 3 + static_cast<std::size_t>(known));
                ++turn;
                const Expr x = known ? input(float32, shape, "x") : tensor4("x");
                cases.add(fmt::format("{} {} along {}, {}", kind.name, text_of(shape), axis, turn), {x},
                          {random_array(float32, shape, random, -1.5, 1.5)},
                          kind.scan(x * 0.75, axis, options, {}));
            }
    cases.run();
}

TEST_CASE("scans of vectors and matrices of many lengths") {
    PackedCases cases(tested_device());
    Random random(2);
    for (const ScanKind& kind : scan_kinds)
        for (const std::int64_t n : {0, 1, 2, 15, 16, 17, 100}) {
            const Expr x = vector("x"), rows = matrix("rows"), columns = matrix("columns");
            const auto add = [&](const char* what, const Expr& v, const Dims& shape, int axis) {
                const Array values = random_array(float32, shape, random, -1.25, 1.25);
                for (std::size_t turn = 0; turn < 2; ++turn) {
                    const ScanOptions options = options_of(turn + static_cast<std::size_t>(n));
                    cases.add(fmt::format("{} of {} {}", kind.name, what, n), {v}, {values},
                              kind.scan(v, axis, options, {}));
                }
            };
            add("a vector", x, {n}, 0);
            add("rows", rows, {n % 16 + 3, n}, 1);
            add("columns", columns, {9, n}, 0);
        }
    cases.run(24);
}

TEST_CASE("scans of all dtypes, with maps before and behind") {
    PackedCases cases(tested_device());
    Random random(3);
    std::size_t turn = 0;
    for (const DType dtype : all_dtypes)
        for (const ScanKind& kind : scan_kinds)
            for (const int axis : {0, 1}) {
                if (kind.scan == ScanFunction(logcumsumexp) && dtype != float32 && dtype != float64) continue;
                const Expr x = input(dtype, 2, "x");
                const Expr y = kind.scan(x, axis, options_of(turn++), {});
                const Array v = random_array(dtype, {19, 21}, random, is_unsigned_integer(dtype) ? 0 : -2, 2);
                cases.add(fmt::format("{} of {} along {}", kind.name, name_of(dtype), axis), {x}, {v}, y);
                cases.add(fmt::format("{} of {} along {}, in a map", kind.name, name_of(dtype), axis), {x},
                          {v}, kind.scan(cast(x, float32) * 0.5, axis, {}, {}) * 2 + cast(y, float32));
            }
    cases.run(24);
}

TEST_CASE("scans of transposed, gathered and padded operands, and what reads them elsewhere") {
    PackedCases cases(tested_device());
    Random random(4);
    const Expr x = matrix("x"), i = ivector("i");
    const Array v = random_array(float32, {30, 18}, random), at = random_array(int32, {25}, random, 0, 29);
    const std::vector<Expr> inputs{x, i};
    const std::vector<Array> values{v, at};
    for (const int axis : {0, 1}) {
        cases.add("transposed", inputs, values, cumsum(transpose(x), axis));
        cases.add("gathered", inputs, values, cumsum(gather(x, i), axis, {.reverse = true}));
        cases.add("padded", inputs, values, cumsum(pad(x, {{1, 2}, {3, 0}}, 0.5), axis, {.exclusive = true}));
        cases.add("from the end", inputs, values, flip(cumsum(flip(x, axis), axis), axis));
        cases.add("again", inputs, values, cumsum(cumsum(x, axis), 1 - axis));
        cases.add("differences", inputs, values, cumsum(x, axis) - x);
        cases.add("in a sum", inputs, values, sum(cumsum(x, axis), {axis}));
        cases.add("of a softmax", inputs, values, cumsum(softmax(x, axis), axis));
        cases.add("by its maximum", inputs, values,
                  cumsum(x, axis) / (1 + max(abs(x), {axis}, {.keepdims = true})));
    }
    cases.run();
}

TEST_CASE("gradients of scans, with zeros and far from zero") {
    PackedCases cases(tested_device());
    Random random(5);
    Array zeros = random_array(float32, {13, 22}, random, -1.5, 1.5);
    for (const std::int64_t at : {0, 3, 9, 50, 51, 52, 100, 150, 201, 285})
        static_cast<float*>(zeros.mutable_data())[at] = 0;
    for (const ScanKind& kind : scan_kinds)
        for (const int axis : {0, 1})
            for (std::size_t turn = 0; turn < 4; ++turn) {
                if (kind.scan == ScanFunction(logcumsumexp) && turn % 2 == 1) continue;
                const Expr x = turn < 2 ? matrix("x") : input(float32, Dims{13, 22}, "x");
                const Expr y = kind.scan(x, axis, options_of(turn), {});
                cases.add(fmt::format("{} along {}, {}", kind.name, axis, turn), {x}, {zeros},
                          grad(sum(y * tanh(y)), x));
                if (axis == 1)
                    cases.add(fmt::format("{}, second", kind.name), {x}, {zeros},
                              grad(sum(sqr(grad(sum(tanh(y)), x))), x));
            }
    cases.run(8);
}

TEST_CASE("logcumsumexp of extremes is finite, and so is its gradient") {
    const Expr x = matrix("x");
    const double inf = std::numeric_limits<double>::infinity();
    const Array v =
        Array(std::vector<double>{1e4, -1e4, 1e4, 3e38, -inf, -inf, -5e4, 2, -3e38, -3e38, 0, 88}, {3, 4})
            .as(float32);
    for (const bool reverse : {false, true}) {
        const Expr y = logcumsumexp(x, 1, {.reverse = reverse});
        OnTwoDevices both({x}, {{"value", y, {.relative = 1e-6}},
                                {"gradient", grad(sum(where(isinf(y), 0, y)), x), {.absolute = 1e-6}}});
        CHECK(both({v}) == "");
    }
}

TEST_CASE("long scans are right, by rows and by columns") {
    Random random(6);
    for (const bool known : {false, true})
        for (const Dims& shape : {Dims{3, 5000}, Dims{5000, 3}, Dims{70, 1500}, Dims{40000, 1}}) {
            const Expr x = known ? input(float32, shape, "x") : matrix("x");
            const Array v = random_array(float32, shape, random, -1, 1);
            std::vector<Case> cases;
            for (const int axis : {0, 1})
                for (const bool reverse : {false, true})
                    cases.push_back({fmt::format("{} {}", axis, reverse),
                                     cumsum(x, axis, {.reverse = reverse}),
                                     {.of_largest = 1e-4}});
            cases.push_back({"flat", cumsum(x), {.of_largest = 1e-4}});
            OnTwoDevices both({x}, cases);
            CHECK(both({v}) == "");
        }
}

TEST_CASE("scans along rows of what is computed, some places ahead") {
    PackedCases cases(tested_device());
    Random random(8);
    std::size_t turn = 0;
    for (const DType dtype : {float32, float64})
        for (const bool known : {true, false})
            for (const Dims& shape :
                 {Dims{5, 256}, Dims{4, 257}, Dims{1, 700}, Dims{9, 10}, Dims{3, 1}, Dims{2, 0}})
                for (const ScanKind& kind : scan_kinds) {
                    const Expr x = known ? input(dtype, shape, "x") : input(dtype, 2, "x");
                    const ScanOptions options = options_of(turn++);
                    // Turned, gathered and guarded reads, with what a row shares.
                    const Expr scaled = tanh(x) * exp(-sqr(x)) + mean(x, {1}, {.keepdims = true});
                    const std::vector<Expr> forms{tanh(x), flip(scaled, 1), pad(tanh(x), {{0, 0}, {2, 3}})};
                    cases.add(fmt::format("{} {} of {}, {}", kind.name, turn, text_of(shape), name_of(dtype)),
                              {x}, {random_array(dtype, shape, random, -1.5, 1.5)},
                              kind.scan(forms[turn % 3], 1, options, {}));
                }
    const Expr v = vector("v"), at = lvector("at");
    const Array values = random_array(float32, {1000}, random, -1, 1);
    cases.add("a vector", {v}, {values}, cumsum(exp(v), 0));
    cases.add("gathered", {v, at}, {values, random_array(int64, {600}, random, 0, 999)},
              cumsum(exp(v[at]), 0));
    cases.run(16);
}
