// Rows of a few elements, a vector lane for each: columns of tiles that are transposed in registers.
#include <fmt/format.h>

#include "graph/base/options.h"

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("sums, maxima and maps of rows of 3 to 17 elements") {
    PackedCases cases(tested_device());
    Random random(1);
    for (const DType dtype : {float32, int32, float64})
        for (const std::int64_t columns : {3, 4, 5, 7, 8, 10, 13, 16, 17})
            for (const std::int64_t rows : {1, 9, 16, 35, 300}) {
                const Expr x = input(dtype, Dims{-1, columns}, "x"), b = input(dtype, Dims{-1}, "b"),
                           c = input(dtype, Dims{columns}, "c");
                const std::vector<Array> values{random_array(dtype, {rows, columns}, random, -9, 9),
                                                random_array(dtype, {rows}, random, -9, 9),
                                                random_array(dtype, {columns}, random, -9, 9)};
                const std::string of = fmt::format("{} [{}, {}]", name_of(dtype), rows, columns);
                const Expr moved = x - expand_dims(b, 1);
                cases.add(of + ", sum", {x}, {values[0]}, sum(x, {1}));
                cases.add(of + ", of distances", {x, b, c}, values, sum(abs(moved * c), {1}));
                cases.add(of + ", largest", {x, b}, {values[0], values[1]}, max(moved, {1}));
                cases.add(of + ", neighbours", {x}, {values[0]},
                          x[{colon, 0}] * x[{colon, 1}] + x[{colon, 2}] * x[{colon, -1}]);
                cases.add(of + ", all but the ends", {x, b}, {values[0], values[1]},
                          sum(x[{colon, Slice{1, -1}}], {1}) + b * 0);
            }
    cases.run(60);
}

TEST_CASE("rows of a few elements in planes, with operands of other planes") {
    PackedCases cases(tested_device());
    Random random(2);
    for (const std::int64_t columns : {5, 10, 12})
        for (const std::int64_t rows : {8, 10, 19, 32}) {
            const Dims all{4, 3, rows, columns};
            const Expr x = input(float32, all, "x"), b = input(float32, Dims{rows, columns}, "b"),
                       c = input(float32, Dims{3, rows, columns}, "c"),
                       d = input(float32, Dims{4, 1, 1, columns}, "d");
            const std::vector<Array> values{random_array(float32, {4, 3, rows, columns}, random),
                                            random_array(float32, {rows, columns}, random),
                                            random_array(float32, {3, rows, columns}, random),
                                            random_array(float32, {4, 1, 1, columns}, random)};
            const std::string of = fmt::format("[{}, {}]", rows, columns);
            cases.add(of + ", rows", {x, b}, {values[0], values[1]}, sum(sqr(x - b), {3}));
            cases.add(of + ", rows of channels", {x, c}, {values[0], values[2]}, sum(sqr(x - c), {3}));
            cases.add(of + ", rows of images", {x, d}, {values[0], values[3]}, sum(sqr(x - d), {3}));
            cases.add(of + ", exponentials", {x, b, d}, {values[0], values[1], values[3]},
                      sum(exp(x * b) * d, {3}));
            cases.add(of + ", images and rows", {x, b}, {values[0], values[1]}, sum(sqr(x - b), {0, 3}));
        }
    cases.run(60);
}

TEST_CASE("rows of a few elements are loaded whole") {
    if (tested_device() != std::string("cpu")) return;
    Options fast_run = options();
    fast_run.mode = Options::Mode::fast_run;
    const ScopedOptions options(fast_run);
    const Expr x = input(float32, Dims{4000, 10}, "x");
    const Function f = function({x}, sum(sqr(x), {1}));
    REQUIRE(f.kernels().size() == 1);
    CHECK(f.kernels()[0].source.find("b_transpose") != std::string::npos);
}
