// Convolutions with filters that are constants, and with one filter, against the oracle.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("convolutions with known filters are sums of their taps") {
    const Expr x = input(float32, {-1, 1, -1, -1}, "x"), bytes = tensor4("bytes", uint8);
    const auto filters = [](const Dims& shape, const std::vector<float>& taps) {
        return constant(Array(taps).reshaped(shape));
    };
    const Expr laplace = filters({1, 1, 3, 3}, {0, 1, 0, 1, -4, 1, 0, 1, 0}),
               sobel = filters({2, 1, 3, 3}, {1, 0, -1, 2, 0, -2, 1, 0, -1, 1, 2, 1, 0, 0, 0, -1, -2, -1}),
               blur = filters({1, 1, 1, 5}, {0.0625F, 0.25F, 0.375F, 0.25F, 0.0625F}),
               nothing = filters({1, 1, 2, 2}, {0, 0, 0, 0});
    const Expr light = cast(bytes, float32) / 255;
    const std::vector<Expr> results{conv2d(x, laplace, {.border_mode = half}),
                                    conv2d(x, sobel, {.border_mode = 1, .subsample = 2}),
                                    conv2d(conv2d(light, blur), transpose(blur, {0, 1, 3, 2})),
                                    conv2d(light, sobel, {.border_mode = full, .filter_flip = false}),
                                    conv2d(x, blur, {.border_mode = half, .dilation = 2}),
                                    conv2d(x, nothing),
                                    grad(sum(sqr(conv2d(x, laplace, {.border_mode = half}))), {x})[0]};
    const std::vector<Array> arguments{uniform_values({2, 1, 21, 19}, -1, 1, 3), ones({1, 1, 12, 40}, uint8)};
    const Results expected = function({x, bytes}, results, {.device = "reference"}).call(arguments);
    const Results got = function({x, bytes}, results, {.device = tested_device()}).call(arguments);
    for (std::size_t k = 0; k < got.size(); ++k) {
        INFO("result " << k);
        CHECK(difference(got[k], expected[k], {.of_largest = 1e-6}) == "");
    }
}

TEST_CASE("strides that are longer than every length") {
    const Shared x = shared(uniform_values({1, 1, 20, 20}, 0.5, 0.5, 1), "x"),
                 w = shared(uniform_values({2, 1, 3, 3}, 0, 1, 3), "w");
    for (const int stride : {100, 10'000'019, 1'000'000'007}) {
        const Expr cost = sum(conv2d(x, w, {.subsample = stride, .dilation = 2}));
        const Results got = function({}, {cost, sum(grad(cost, x)), sum(grad(cost, w))})();
        const double weights = eval(sum(w)).at(0);
        CHECK(got[0].at(0) == Approx(weights / 2));
        CHECK(got[1].at(0) == Approx(weights));
        CHECK(got[2].at(0) == Approx(9));
    }
}

TEST_CASE("one filter of 25 elements or more, for images of one channel and of several") {
    PackedCases cases(tested_device());
    Random random(31);
    for (const auto& [h, w] : {std::pair<std::int64_t, std::int64_t>{5, 5}, {7, 9}, {3, 11}})
        for (const Dims& shape : {Dims{2, 1, 23, 70}, Dims{1, 1, 41, 19}, Dims{2, 3, 12, 33}}) {
            const std::int64_t channels = shape[1];
            const Expr x = input(float32, shape, "x"),
                       filter = input(float32, Dims{1, channels, h, w}, "filter"),
                       own = input(float32, Dims{channels, 1, h, w}, "own");
            const std::vector<Array> values{random_array(float32, shape, random),
                                            random_array(float32, {1, channels, h, w}, random)},
                by_channel{values[0], random_array(float32, {channels, 1, h, w}, random)};
            const std::string of = fmt::format("{} {}", text_of(Dims{h, w}), text_of(Dims(shape)));
            cases.add(of + ", valid", {x, filter}, values, conv2d(x, filter));
            cases.add(of + ", half", {x, filter}, values, tanh(conv2d(x, filter, {.border_mode = half})));
            cases.add(of + ", correlated", {x, filter}, values, conv2d(x, filter, {.filter_flip = false}));
            cases.add(of + ", gradient", {x, filter}, values, grad(sum(sqr(conv2d(x, filter))), x));
            cases.add(of + ", by channel", {x, own}, by_channel,
                      conv2d(x, own, {.border_mode = half, .groups = static_cast<int>(channels)}));
        }
    cases.run(60);
}
