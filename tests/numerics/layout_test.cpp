// Values whose axes are stored in another order, and reductions with many results, against the oracle.
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Small whole numbers: every sum is exact, in any order.
Array whole(const Dims& shape, Random& random) {
    return random_array(int8, shape, random, -2, 2).as(float32);
}

}  // namespace

TEST_CASE("pooled maps that a gradient reads along their channels have those last in memory") {
    Random random(1);
    const Expr x = input(float32, {-1, 1, 28, 28}, "x"), w = input(float32, {10, 1, 3, 3}, "w"),
               b = input(float32, Dims{10}, "b");
    const Expr h = relu(max_pool(conv2d(x, w, {.border_mode = half}), 2) + reshape(b, {10, 1, 1}));
    const std::vector<Expr> gradients = grad(sum(sqr(h)), {w, b});
    const Function f = function({x, w, b}, gradients, {.name = "layout", .device = tested_device()});
    CHECK_THAT(f.report(Detail::complete), ContainsSubstring("axes in the order 0 2 3 1"));
    for (const std::int64_t batch : {0, 1, 7}) {
        const std::vector<Array> values = {whole({batch, 1, 28, 28}, random), whole({10, 1, 3, 3}, random),
                                           whole({10}, random)};
        PackedCases one(tested_device(), 0);
        one.add("filters", {x, w, b}, values, gradients[0]);
        one.add("bias", {x, w, b}, values, gradients[1]);
        one.run();
    }
}

TEST_CASE("gradients of many filters are sums of whole rows") {
    PackedCases cases(tested_device(), 0);
    Random random(2);
    // More results than fit the lanes of one task; images of one size, and some too small for lanes.
    for (const std::int64_t side : {20, 9})
        for (const std::int64_t batch : {1, 3, 40}) {
            const Expr x = input(float32, {-1, 12, side, side}, "x"), w = input(float32, {9, 12, 3, 3}, "w");
            const Expr y = conv2d(x, w, {.border_mode = half});
            cases.add("side " + std::to_string(side) + ", batch " + std::to_string(batch), {x, w},
                      {whole({batch, 12, side, side}, random), whole({9, 12, 3, 3}, random)},
                      grad(sum(sqr(y)), w));
        }
    cases.run();
}

TEST_CASE("channels of images that are rows of a product are summed by one task") {
    PackedCases cases(tested_device());
    Random random(3);
    for (const Border border : {valid, half})
        for (const std::int64_t channels : {3, 5}) {
            const std::string name = std::to_string(channels) + " channels" +
                                     (border.kind == Border::Kind::half ? ", padded" : "");
            const std::int64_t pixels = channels * 144;
            const Expr rows = input(float32, {12, 40}, "rows"), w = input(float32, {40, pixels}, "w"),
                       f = input(float32, {16, channels, 5, 5}, "f");
            const Expr y = conv2d(reshape(dot(rows, w), {12, channels, 12, 12}), f, {.border_mode = border});
            INFO(name);
            const Function images = function({rows, w, f}, y, {.device = tested_device()});
            CHECK_THAT(images.report(Detail::complete),
                       !ContainsSubstring("reduction over " + std::to_string(channels) + " in parts"));
            // Vectors are loaded from a copy with its border, not one by one from the product.
            if (border.kind == Border::Kind::half && std::string(tested_device()) == "cpu")
                CHECK_THAT(images.report(Detail::complete), ContainsSubstring("staged reshape"));
            const std::vector<Array> values = {random_array(float32, {12, 40}, random),
                                               random_array(float32, {40, pixels}, random),
                                               random_array(float32, {16, channels, 5, 5}, random)};
            cases.add(name, {rows, w, f}, values, y);
            cases.add(name + ", gradient", {rows, w, f}, values, grad(sum(sqr(y)), f));
        }
    cases.run();
}
