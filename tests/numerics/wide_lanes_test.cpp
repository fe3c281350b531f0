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

TEST_CASE("conditions of elements of several widths, combined in each other") {
    PackedCases cases(tested_device());
    Random random(3);
    for (const std::int64_t n : {37, 530}) {
        const Dims shape{5, n};
        const Expr f = input(float32, 2, "f"), d = input(float64, 2, "d"), b = input(uint8, 2, "b"),
                   s = input(int16, 2, "s"), m = input(boolean, 2, "m"), j = input(int64, 2, "j");
        const std::vector<Expr> inputs{f, d, b, s, m, j},
            conditions{lt(f, 0.3F), ge(d, 0.5), eq(b, 3), gt(s, -2), m, neq(j, 4)};
        const std::vector<Array> values{
            random_array(float32, shape, random),     random_array(float64, shape, random),
            random_array(uint8, shape, random, 0, 5), random_array(int16, shape, random, -5, 5),
            random_array(boolean, shape, random),     random_array(int64, shape, random, 0, 9)};
        for (std::size_t k = 0; k < conditions.size(); ++k) {
            const std::size_t next = (k + 1) % conditions.size(), last = (k + 3) % conditions.size();
            const Expr &x = conditions[k], &y = conditions[next], &z = conditions[last];
            const std::vector<Expr> of{inputs[k], inputs[next], inputs[last]};
            const std::vector<Array> with{values[k], values[next], values[last]};
            const std::string name = fmt::format("{} of {}", k, n);
            cases.add(name + ", and in or", of, with, logical_or(x, logical_and(y, z)));
            cases.add(name + ", or in and", of, with, cast(logical_and(x, logical_or(y, z)), uint8));
            cases.add(name + ", bits", of, with, bitwise_and(x, bitwise_or(y, logical_not(z))));
            cases.add(name + ", a count", of, with, sum(cast(logical_or(logical_and(x, y), z), int32), {1}));
            cases.add(name + ", chosen", of, with,
                      sum(where(logical_and(logical_or(x, y), z), cast(of[0], float32), 0), {1}));
        }
    }
    cases.run(60);
}
