// Softmax over the channels of images, as segmentation has: a task has a part of an image where scratch has
// no room for all of it.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/oracles.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("losses over the channels of images, and their gradients") {
    for (const Dims& size : {Dims{-1, 5, 96, 131}, Dims{-1, 3, 167, 101}, Dims{-1, 4, 6, 10}}) {
        const Expr x = input(float32, size, "x"), labels = input(uint8, {-1, size[2], size[3]}, "labels");
        const Expr p = softmax(x, 1), one = transpose(one_hot(cast(labels, int32), size[1]), {0, 3, 1, 2});
        const Expr picked = sum(p * one, 1), loss = mean(sqr(1 - picked) * -log(picked));
        const std::vector<Expr> outputs{p, log_softmax(x, 1), loss, grad(loss, x),
                                        grad(sum(sqr(log_softmax(x, 1))), x)};
        Function f = function({x, labels}, outputs, {.device = tested_device()});
        Random random(size[3]);
        for (const std::int64_t n : {0, 1, 3}) {
            const std::vector<Array> values{
                random_array(float32, {n, size[1], size[2], size[3]}, random),
                random_array(uint8, {n, size[2], size[3]}, random, 0, static_cast<double>(size[1] - 1))};
            const Results results = f.call(values);
            const std::vector<WidePtr> expected = evaluated_wide(outputs, {x, labels}, values);
            for (std::size_t k = 0; k < outputs.size(); ++k) {
                if (n == 0 && k == 2) continue;  // a mean of nothing
                INFO(n << " images of " << size[1] << " x " << size[2] << " x " << size[3] << ", result "
                       << k);
                CHECK(difference(results[k], *expected[k]) == "");
            }
        }
    }
}
