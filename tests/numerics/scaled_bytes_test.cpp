// Sums of small integers that are scaled and shifted: as near to the exact sums as a number of the dtype is,
// in whatever form, over whichever axes, of any length.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;
using namespace bitale::test;

namespace {

struct Affine {
    std::string name;
    std::function<Expr(const Expr&)> of;       // of a float
    std::function<long double(double)> value;  // of one element, where each constant is the dtype's
};

// The constants as the dtype has them.
std::vector<Affine> affine_forms(DType dtype) {
    const auto c = [dtype](double x) -> long double { return dtype == float32 ? float(x) : x; };
    return {
        {"x / 255", [](const Expr& x) { return x / 255; }, [](double x) { return x / 255.0L; }},
        {"x * (1 / 255)", [](const Expr& x) { return x * (1.0 / 255); },
         [c](double x) { return x * c(1.0 / 255); }},
        {"x - 128", [](const Expr& x) { return x - 128; }, [](double x) { return x - 128.0L; }},
        {"0.3 - x", [](const Expr& x) { return 0.3 - x; }, [c](double x) { return c(0.3) - x; }},
        {"(x - 128) / 255", [](const Expr& x) { return (x - 128) / 255; },
         [](double x) { return (x - 128.0L) / 255; }},
        {"x / 255 - 0.5", [](const Expr& x) { return x / 255 - 0.5; },
         [](double x) { return x / 255.0L - 0.5L; }},
        {"(x / 255 - 0.449) / 0.226", [](const Expr& x) { return (x / 255 - 0.449) / 0.226; },
         [c](double x) { return (x / 255.0L - c(0.449)) / c(0.226); }},
        {"-(3 * x + 1)", [](const Expr& x) { return -(3 * x + 1); },
         [](double x) { return -(3.0L * x + 1); }},
    };
}

// The sums over the axes of the form's values, of an array of rank 4.
std::vector<long double> exact_sums(const Array& x, const std::vector<int>& axes, const Affine& form,
                                    std::vector<long double>& magnitudes) {
    const Dims& shape = x.shape();
    std::int64_t results = 1;
    for (int d = 0; d < 4; ++d)
        if (std::find(axes.begin(), axes.end(), d) == axes.end()) results *= shape[d];
    std::vector<long double> totals(results, 0);
    magnitudes.assign(results, 0);
    for (std::int64_t i = 0; i < x.size(); ++i) {
        std::int64_t rest = i, at = 0, stride = 1;
        for (int d = 3; d >= 0; --d) {
            const std::int64_t k = rest % shape[d];
            rest /= shape[d];
            if (std::find(axes.begin(), axes.end(), d) != axes.end()) continue;
            at += k * stride;
            stride *= shape[d];
        }
        totals[at] += form.value(x.at(i));
        magnitudes[at] += std::abs(form.value(x.at(i))) + 2;  // and what a shift of 0.5 or so cancels
    }
    return totals;
}

Axes listed(const std::vector<int>& list) {
    Axes axes;
    for (const int axis : list) axes.push_back(axis);
    return axes;
}

}  // namespace

TEST_CASE("sums of no terms are 0, whatever they are scaled by") {
    const Expr x = input(uint8, {-1, 3}, "x"), s = scalar("s"), terms = cast(x, float32) * s;
    Function f =
        function({x, s}, {sum(terms, 0), sum(terms), sum(-terms - 2, 0)}, {.device = tested_device()});
    for (const float factor : {INFINITY, NAN, 0.5F}) {
        const Results none = f(Array(std::vector<std::uint8_t>{}, {0, 3}), factor);
        for (std::size_t k = 0; k < none.size(); ++k)
            for (std::int64_t i = 0; i < none[k].size(); ++i) CHECK(none[k].at(i) == 0);
        const Results one = f(Array(std::vector<std::uint8_t>{1, 2, 0}, {1, 3}), factor);
        CHECK((std::isnan(factor) ? std::isnan(one[0].at(1)) : one[0].at(1) == 2.0 * factor));
    }
}

TEST_CASE("scaled and shifted sums of small integers are rounded once") {
    Random random(21);
    const std::vector<std::vector<int>> subsets = {{0, 1, 2}, {0, 2, 3}, {1, 2, 3}, {0, 1, 2, 3}, {3}, {0}};
    for (const DType from : {uint8, int8, uint16, int16, boolean})
        for (const DType to : {float32, float64})
            for (const bool known : {true, false}) {
                const Dims largest{33, 5, 8, 9};
                const Expr x = input(from, known ? largest : Dims{-1, -1, -1, -1}, "x");
                const std::vector<Affine> all = affine_forms(to);
                std::vector<Expr> outputs;
                for (const Affine& form : all)
                    for (const std::vector<int>& axes : subsets)
                        outputs.push_back(sum(form.of(cast(x, to)), listed(axes)));
                FunctionOptions options;
                options.device = tested_device();
                options.specialise = false;
                Function f = function({x}, outputs, options);
                std::vector<Dims> shapes{largest};
                if (!known)
                    shapes.insert(shapes.end(), {{0, 3, 4, 5}, {1, 1, 1, 1}, {7, 5, 3, 1}, {2, 0, 1, 3}});
                for (const Dims& shape : shapes) {
                    const Array a = random_array(from, shape, random, -40000, 70000);
                    const Results got = f(a);
                    std::size_t k = 0;
                    for (const Affine& form : all)
                        for (const std::vector<int>& axes : subsets) {
                            std::vector<long double> magnitudes;
                            const std::vector<long double> expected = exact_sums(a, axes, form, magnitudes);
                            const Array& sums = got[k++];
                            REQUIRE(sums.size() == std::ssize(expected));
                            double worst = 0;
                            for (std::size_t i = 0; i < expected.size(); ++i) {
                                // float64 rounds the sum and the shift, and one may cancel the other.
                                const long double ulp = to == float32 ? 0x1p-23L : 0x1p-52L,
                                                  scale =
                                                      to == float32 ? std::abs(expected[i]) : magnitudes[i],
                                                  off = std::abs(expected[i] - sums.at(i));
                                const long double least = to == float32 ? 0x1p-48L * magnitudes[i] : 0.0L;
                                worst = std::max(worst, double(off / (ulp * scale + least + 1e-300L)));
                            }
                            INFO(form.name << " of " << name_of(from) << " " << text_of(shape) << " in "
                                           << name_of(to) << ", sum " << k << (known ? "" : ", unknown"));
                            CHECK(worst <= (to == float32 ? 0.51 : 2.0));
                        }
                }
            }
}

TEST_CASE("a shift that cancels the sum of many bytes leaves no rounding") {
    constexpr std::int64_t n = 200'000;
    std::vector<std::uint8_t> list(n);
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        list[i] = static_cast<std::uint8_t>(127 + i % 3);
        total += list[i] - 128;
    }
    list[5] = 130;
    total += 130 - (127 + 5 % 3);
    const Expr x = vector("x", uint8);
    const Expr wide = cast(x, int32);
    FunctionOptions options;
    options.device = tested_device();
    Function f = function({x},
                          {sum(cast(x, float32) - 128), sum(cast(wide - 128, float32)), sum(wide - 128),
                           sum((cast(x, float32) - 128) / 4), mean(cast(x, float32) - 128)},
                          options);
    const Results got = f(Array(list));
    CHECK(got[0].at(0) == double(total));
    CHECK(got[1].at(0) == double(total));
    CHECK(got[2].at(0) == double(total));
    CHECK(got[3].at(0) == double(total) / 4);
    CHECK(got[4].at(0) == float(double(total) / double(n)));
}

TEST_CASE("the same mean of bytes in several forms") {
    Random random(22);
    const Array a = random_array(uint8, {50, 21, 19, 3}, random, 0, 255);
    const Expr x = input(uint8, Dims{50, 21, 19, 3}, "x"), pixels = cast(x, float32);
    const Expr scaled = pixels / 255 - 0.5;
    FunctionOptions options;
    options.device = tested_device();
    Function f =
        function({x},
                 {mean(scaled, {0, 1, 2}), mean(reshape(scaled, {-1, 3}), {0}),
                  mean(transpose(scaled, {3, 2, 0, 1}), {1, 2, 3}),
                  mean(flip(reshape(transpose(scaled, {3, 0, 1, 2}), {3, -1}), 1), {1}),
                  reshape(mean(scaled, {0, 1, 2}, {.keepdims = true}), {3}),
                  mean(reshape(pixels, {-1, 3}) / 255 - 0.5, {0}), mean(scaled, {0, 1, 2}) + 0 * sum(scaled)},
                 options);
    const Results got = f(a);
    for (std::size_t k = 1; k < got.size(); ++k) {
        INFO("form " << k);
        CHECK(same(got[k], got[0]));
    }
}

TEST_CASE("scaled and shifted sums over parts of a batch have the bits of the whole one") {
    Random random(23);
    for (const std::int64_t rows : {5, 300}) {
        const Shared bytes = shared(random_array(uint8, {rows, 3, 9, 8}, random, 0, 255), "bytes");
        const Expr x = tensor4("x", float32);
        const std::vector<Expr> outputs{sum(x / 255 - 0.5), mean((x - 128) / 255, {0, 2, 3}),
                                        mean(-x * 3 + 1), sum((x / 255 - 0.449) / 0.226, {0, 3}),
                                        x - mean(x - 128, {0, 1})};
        const auto run = [&](std::int64_t part) {
            return function(
                {}, outputs,
                {.givens = {{x, cast(bytes, float32)}}, .device = tested_device(), .micro_batch = part})();
        };
        const Results whole = run(0);
        for (const std::int64_t part : {2, 41}) {
            const Results got = run(part);
            for (std::size_t k = 0; k < outputs.size(); ++k) {
                INFO(rows << " rows, parts of " << part << ": result " << k);
                CHECK(same(got[k], whole[k]));
            }
        }
    }
}

TEST_CASE("constants that are no numbers, vanish or overflow keep the meaning of each term") {
    const Expr x = vector("x", uint8), pixels = cast(x, float32);
    const double inf = INFINITY;
    FunctionOptions options;
    options.device = tested_device();
    Function f = function({x},
                          {sum(pixels * inf), sum(pixels / 0), sum(pixels - inf), sum(pixels * 3e38),
                           sum(pixels * 1e-44), sum(pixels * NAN), sum(pixels * 0)},
                          options);
    const Results none = f(Array(std::vector<std::uint8_t>{}));
    for (std::size_t k = 0; k < none.size(); ++k) CHECK(none[k].at(0) == 0);
    const Results some = f(Array(std::vector<std::uint8_t>{1, 2, 1}));
    CHECK(some[0].at(0) == inf);
    CHECK(some[1].at(0) == inf);
    CHECK(some[2].at(0) == -inf);
    CHECK(some[3].at(0) == inf);
    CHECK(some[5].at(0) != some[5].at(0));
    CHECK(some[6].at(0) == 0);
    const Results zero = f(Array(std::vector<std::uint8_t>{1, 0}));
    CHECK(std::isnan(zero[0].at(0)));
    CHECK(std::isnan(zero[1].at(0)));
}
