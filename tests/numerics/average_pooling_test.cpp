// Means over windows against loops in float64: windows, strides and borders, and every element of a gradient.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Averages {
    std::int64_t planes, h, w;
    std::int64_t window[2], stride[2], pad[2];
    bool count_padding;

    std::int64_t results(int axis) const {
        return ((axis == 0 ? h : w) + 2 * pad[axis] - window[axis]) / stride[axis] + 1;
    }
    AveragePoolOptions options() const {
        const auto size = [](const std::int64_t(&x)[2]) {
            return Size2(static_cast<int>(x[0]), static_cast<int>(x[1]));
        };
        return {.stride = size(stride), .pad = size(pad), .count_padding = count_padding};
    }
    Expr of(const Expr& x) const {
        return average_pool(x, {static_cast<int>(window[0]), static_cast<int>(window[1])}, options());
    }

    // f(result, element, share) for each element of each window.
    template <class F>
    void for_each(F&& f) const {
        for (std::int64_t p = 0; p < planes; ++p)
            for (std::int64_t i = 0; i < results(0); ++i)
                for (std::int64_t j = 0; j < results(1); ++j) {
                    std::vector<std::int64_t> inside;
                    for (std::int64_t y = i * stride[0] - pad[0]; y < i * stride[0] - pad[0] + window[0]; ++y)
                        for (std::int64_t x = j * stride[1] - pad[1]; x < j * stride[1] - pad[1] + window[1];
                             ++x)
                            if (y >= 0 && y < h && x >= 0 && x < w) inside.push_back((p * h + y) * w + x);
                    const auto count = count_padding ? window[0] * window[1] : std::ssize(inside);
                    for (const std::int64_t at : inside)
                        f((p * results(0) + i) * results(1) + j, at, 1.0 / static_cast<double>(count));
                }
    }
};

const std::vector<Averages> many = {
    {6, 8, 8, {2, 2}, {2, 2}, {0, 0}, false},  {6, 9, 11, {2, 3}, {2, 3}, {0, 0}, false},
    {4, 7, 20, {3, 3}, {1, 1}, {1, 1}, false}, {4, 7, 20, {3, 3}, {1, 1}, {1, 1}, true},
    {5, 13, 9, {3, 3}, {2, 2}, {1, 1}, false}, {3, 12, 17, {4, 2}, {1, 3}, {2, 1}, true},
    {1, 5, 5, {5, 5}, {5, 5}, {0, 0}, false},  {2, 6, 70, {1, 5}, {1, 1}, {0, 4}, false},
    {3, 6, 6, {2, 2}, {3, 4}, {1, 0}, false},  {40, 1, 1, {1, 1}, {1, 1}, {0, 0}, true}};

}  // namespace

TEST_CASE("means over windows, and their gradients") {
    Random random(31);
    for (const Averages& a : many)
        for (const bool known : {true, false}) {
            const Dims shape{a.planes, a.h, a.w};
            const Expr x = known ? input(float32, shape, "x") : tensor3("x"), y = a.of(x),
                       weights = tensor3("weights");
            const Array values = random_array(float32, shape, random),
                        factors = random_array(float32, {a.planes, a.results(0), a.results(1)}, random);
            const Results got =
                function({x, weights}, {y, grad(sum(y * weights), x)}, here())(values, factors);
            const std::vector<float> from = values.to_vector<float>(),
                                     weighted_by = factors.to_vector<float>();
            std::vector<double> means(weighted_by.size()), gradient(from.size());
            a.for_each([&](std::int64_t result, std::int64_t at, double share) {
                means[static_cast<std::size_t>(result)] += share * from[static_cast<std::size_t>(at)];
                gradient[static_cast<std::size_t>(at)] +=
                    share * weighted_by[static_cast<std::size_t>(result)];
            });
            INFO(fmt::format("{} x {}, windows {} x {}, strides {} x {}, known {}", a.h, a.w, a.window[0],
                             a.window[1], a.stride[0], a.stride[1], known));
            CHECK(difference(got[0], Array(means, factors.shape()).as(float32), {.of_largest = 1e-6}) == "");
            CHECK(difference(got[1], Array(gradient, shape).as(float32), {.of_largest = 1e-6}) == "");
        }
}

TEST_CASE("means over windows of every dtype, of four axes, and of no image") {
    Random random(32);
    for (const DType dtype : all_dtypes) {
        const Expr x = input(dtype, {2, 3, 9, 8}, "x");
        const Expr tiles = average_pool(x, 2), windows = average_pool(x, 3, {.stride = 2, .pad = 1});
        CHECK(tiles.dtype() == (is_float(dtype) ? dtype : float32));
        const Array values = random_array(dtype, {2, 3, 9, 8}, random);
        const Results got = function({x}, {tiles, windows}, here())(values);
        const Results expected = function({x}, {tiles, windows}, {.device = "reference"})(values);
        INFO(name_of(dtype));
        for (const std::size_t i : {0, 1})
            CHECK(difference(got[i], expected[i], {.ulps = 1, .of_largest = 1e-6}) == "");
    }
    const Expr none = input(float32, {0, 4, 4}, "none");
    CHECK(function({none}, average_pool(none, 2), here())(zeros({0, 4, 4}))[0].shape() == Dims{0, 2, 2});
}

TEST_CASE("windows of means that do not fit") {
    const Expr x = tensor4("x"), vector_ = vector("v");
    CHECK_THROWS_AS(average_pool(input(float32, {1, 1, 3, 3}, "x"), 4), ShapeError);
    CHECK_THROWS_AS(average_pool(x, 0), ShapeError);
    CHECK_THROWS_AS(average_pool(x, 2, {.pad = 2}), ShapeError);
    CHECK_THROWS_AS(average_pool(vector_, 2), ShapeError);
    using Catch::Matchers::Contains;
    CHECK_THROWS_WITH(average_pool(x, 2, {.pad = 2}), Contains("average_pool: a padding of 2"));
    Function f = function({x}, average_pool(x, 4), here());
    CHECK_THROWS_WITH(f(zeros({1, 1, 3, 5})),
                      Contains("average_pool of \"x\"") &&
                          Contains("the height of its window, 4, is more than that of the images, 3"));
}
