// Convolutions in groups of channels: equal to the concatenation of a convolution for each group, with their
// gradients, for groups of every size up to depthwise.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/error_of.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

struct Shapes {
    std::int64_t images, groups, channels, outputs, height, width, kernel;  // channels and outputs of a group
};

FunctionOptions on(const char* device) {
    FunctionOptions o;
    o.device = device;
    return o;
}

Expr one_by_one(const Expr& x, const Expr& w, const Shapes& s, ConvOptions options) {
    std::vector<Expr> parts;
    options.groups = 1;
    for (std::int64_t g = 0; g < s.groups; ++g)
        parts.push_back(conv2d(x[{colon, Slice{g * s.channels, (g + 1) * s.channels}}],
                               w[{Slice{g * s.outputs, (g + 1) * s.outputs}}], options));
    return concatenate(parts, 1);
}

// The convolution, with its three kinds of readers: as it is, behind a map and pooling, and its gradients.
std::vector<Expr> results(const Expr& x, const Expr& w, const Expr& y) {
    const Expr loss = sum(sqr(y)) + sum(sin(relu(y)));
    std::vector<Expr> all{y, exp(-sqr(y)) + 1, mean(y, {0, 2, 3})};
    for (const Expr& gradient : grad(loss, {x, w})) all.push_back(gradient);
    return all;
}

void check(const Shapes& s, ConvOptions options, bool known, DType dtype, double tolerance) {
    const std::int64_t c = s.groups * s.channels;
    const Dims image{s.images, c, s.height, s.width},
        filters{s.groups * s.outputs, s.channels, s.kernel, s.kernel};
    const Expr x = known ? input(dtype, image, "x") : input(dtype, 4, "x"),
               w = known ? input(dtype, filters, "w") : input(dtype, Dims{-1, -1, s.kernel, s.kernel}, "w");
    const Expr xs = input(dtype, image, "x"), ws = input(dtype, filters, "w");
    options.groups = static_cast<int>(s.groups);
    Random random(4);
    const std::vector<Array> arguments{random_array(dtype, image, random, -1, 1),
                                       random_array(dtype, filters, random, -1, 1)};
    const Results wanted =
        function({xs, ws}, results(xs, ws, one_by_one(xs, ws, s, options)), on("reference")).call(arguments);
    const Results got =
        function({x, w}, results(x, w, conv2d(x, w, options)), on(tested_device())).call(arguments);
    for (std::size_t i = 0; i < got.size(); ++i) {
        INFO(fmt::format("{} groups of {} to {}, {} x {} x {}, kernel {}, stride {}, {}, result {}", s.groups,
                         s.channels, s.outputs, s.images, s.height, s.width, s.kernel, options.subsample.h,
                         known ? "known" : "unknown", i));
        CHECK(difference(got[i], wanted[i], {.of_largest = tolerance}) == "");
    }
}

}  // namespace

TEST_CASE("groups of channels") {
    for (const bool known : {true, false}) {
        check({2, 2, 3, 4, 7, 9, 3}, {}, known, float32, 1e-5);
        check({3, 4, 1, 1, 8, 8, 3}, {.border_mode = half}, known, float32, 1e-5);
        check({2, 16, 1, 1, 9, 17, 3}, {.border_mode = half, .subsample = 2}, known, float32, 1e-5);
        check({1, 3, 5, 2, 10, 6, 2}, {.border_mode = full, .subsample = {2, 1}, .filter_flip = false}, known,
              float64, 1e-12);
        check({2, 5, 2, 1, 12, 11, 3}, {.border_mode = {2, 1}, .dilation = 2}, known, float32, 1e-5);
        check({4, 8, 8, 16, 5, 5, 1}, {}, known, float32, 1e-5);
        check({0, 2, 2, 2, 5, 5, 3}, {}, known, float32, 1e-5);
        check({1, 1, 3, 2, 5, 5, 3}, {}, known, float32, 1e-5);
    }
    check({2, 4, 16, 16, 14, 14, 3}, {.border_mode = half}, true, float32, 1e-5);
    check({2, 32, 1, 1, 28, 28, 3}, {.border_mode = half}, true, float32, 1e-5);
    check({2, 32, 1, 2, 14, 14, 5}, {.border_mode = half, .subsample = 2}, true, float32, 1e-5);
}

TEST_CASE("groups of bytes are cast where they are read") {
    const Expr x = input(uint8, Dims{-1, 6, 10, 10}, "x");
    const Shared w = shared(ones({4, 3, 3, 3}), "w");
    const Expr y = conv2d(cast(x, float32) / 255.0, w, {.border_mode = half, .groups = 2});
    Random random(5);
    const Array images = random_array(uint8, {5, 6, 10, 10}, random, 0, 255);
    const Array wanted = function({x}, y, on("reference"))(images);
    Function f = function({x}, y, on(tested_device()));
    CHECK(difference(f(images), wanted, {.of_largest = 1e-5}) == "");
}

TEST_CASE("groups that do not fit are refused, then or at the call") {
    const Expr x = input(float32, {2, 6, 5, 5}, "x"), w = input(float32, {4, 3, 3, 3}, "w"),
               any = input(float32, 4, "any");
    CHECK_THAT(error_of([&] { conv2d(x, w, {.groups = 3}); }), ContainsSubstring("3 groups of 3 channels") &&
                                                                   ContainsSubstring("9 channels, not 6") &&
                                                                   ContainsSubstring("groups_test.cpp"));
    CHECK_THAT(error_of([&] {
                   conv2d(x, input(float32, {4, 2, 3, 3}, "w"), {.groups = 3});
               }),
               ContainsSubstring("4 filters cannot be shared out to 3 groups"));
    CHECK_THAT(error_of([&] { conv2d(x, w, {.groups = 0}); }),
               ContainsSubstring("groups must be at least 1, but is 0"));
    CHECK_THAT(error_of([&] { conv2d(cast(x, uint8), w, {.groups = 2}); }), ContainsSubstring("cast"));
    Function f = function({any, w}, {conv2d(any, w, {.groups = 2})}, on(tested_device()));
    CHECK_THAT(error_of([&] {
                   f.call(std::vector<Array>{ones({2, 5, 5, 5}), ones({4, 3, 3, 3})});
               }),
               ContainsSubstring("groups_test.cpp") &&
                   ContainsSubstring("length 5 and axis 1 of the shape has length 6"));
}
