// Reductions in lanes of what bytes and booleans choose or scale: the bytes become wide before the loop.
#include <fmt/format.h>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

TEST_CASE("masks and small integers in sums, maxima and positions of rows") {
    PackedCases cases(tested_device());
    Random random(1);
    for (const DType dtype : {boolean, uint8, int8, int16, uint16})
        for (const std::int64_t n : {16, 37, 100, 530}) {
            const Expr x = input(float32, 2, "x"), m = input(dtype, 2, "m"), flag = neq(m, 0);
            const Dims shape{23, n};
            const std::vector<Array> values{
                random_array(float32, shape, random),
                dtype == boolean
                    ? random_array(boolean, shape, random)
                    : random_array(dtype, shape, random, dtype == int8 || dtype == int16 ? -9 : 0, 9)};
            const std::string of = fmt::format("{} {}", name_of(dtype), n);
            cases.add(of + ", scaled", {x, m}, values, sum(exp(x) * cast(m, float32), {1}));
            cases.add(of + ", of all", {x, m}, values, sum(sqr(x - cast(m, float32))));
            cases.add(of + ", chosen", {x, m}, values, sum(where(flag, exp(x), 0), {1}));
            cases.add(of + ", best", {x, m}, values, max(where(flag, x, -1e9F), {1}));
            cases.add(of + ", its place", {x, m}, values, argmax(where(flag, x, -1e9F), {1}));
            cases.add(of + ", both masks", {x, m}, values,
                      sum(cast(logical_and(flag, x > 0), float32) * x + cast(m, float32), {1}));
            cases.add(of + ", shares", {x, m}, values, softmax(where(flag, x, -30.0F)));
        }
    cases.run(60);
}

TEST_CASE("short sums of rows of masks and bytes, written out") {
    PackedCases cases(tested_device());
    Random random(2);
    for (const DType dtype : {boolean, uint8, int8})
        for (const std::int64_t rows : {3, 7, 15})
            for (const std::int64_t columns : {8, 16, 72}) {
                const Expr m = input(dtype, Dims{rows, columns}, "m"),
                           x = input(float32, Dims{rows, columns}, "x"), wide = cast(m, float32);
                const std::vector<Array> values{dtype == boolean
                                                    ? random_array(boolean, {rows, columns}, random)
                                                    : random_array(dtype, {rows, columns}, random, 0, 100),
                                                random_array(float32, {rows, columns}, random)};
                const std::string of = fmt::format("{} [{}, {}]", name_of(dtype), rows, columns);
                cases.add(of + ", sum", {m}, {values[0]}, sum(wide, {0}));
                cases.add(of + ", scaled", {m, x}, values, sum(wide * x, {0}));
                cases.add(of + ", chosen", {m, x}, values, sum(where(neq(m, 0), x, -x), {0}));
                cases.add(of + ", centred", {m}, {values[0]}, wide - mean(wide - 3, {0}));
            }
    cases.run(60);
}
