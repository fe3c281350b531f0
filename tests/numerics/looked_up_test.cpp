// Values that are looked up for each point of a loop: schedules that turn, unroll or cut the loop have to
// keep the lookup inside of it.
#include <fmt/format.h>

#include <array>

#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Array places(const Dims& shape, std::int64_t high, Random& random) {
    return random_array(int32, shape, random, 0, static_cast<double>(high - 1));
}

}  // namespace

TEST_CASE("a column is set by a list of one, and the result is read across") {
    PackedCases cases(tested_device());
    Random random(1);
    for (const bool known : {true, false}) {
        const Expr x = known ? input(float32, Dims{12, 8}, "x") : matrix("x"),
                   i = known ? input(int32, Dims{1}, "i") : ivector("i"),
                   y = known ? input(float32, Dims{12, 1}, "y") : matrix("y"),
                   w = known ? input(float32, Dims{8, 7}, "w") : matrix("w");
        const std::string of = known ? "known" : "unknown";
        const std::vector<Array> values{random_array(float32, {12, 8}, random), places({1}, 8, random),
                                        random_array(float32, {12, 1}, random),
                                        random_array(float32, {8, 7}, random)};
        const Expr set = set_subtensor(tanh(x), {colon, i}, y);
        cases.add(of + ", a product", {x, i, y, w}, values, dot(set, w));
        cases.add(of + ", the rows of a transpose", {x, i, y}, {values[0], values[1], values[2]},
                  softmax(transpose(set)));
        cases.add(of + ", the gradient", {x, i, y, w}, values, grad(sum(sqr(dot(set, w))), x));
    }
    const Expr x = input(float32, Dims{12, 16}, "x"), i = input(int32, Dims{1}, "i");
    cases.add("reshaped and turned", {x, i},
              {random_array(float32, {12, 16}, random), places({1}, 16, random)},
              reshape(transpose(reshape(set_subtensor(x, {colon, i}, 0.5F), {8, 24})), {12, 16}));
    cases.run();
}

TEST_CASE("sorted columns of a reshape take their elements from rows that it cuts") {
    PackedCases cases(tested_device());
    Random random(2);
    const Expr x = input(float32, Dims{4, 12}, "x"), b = input(float32, Dims{12}, "b"), u = matrix("u"),
               t = input(float32, Dims{12, 4}, "t");
    const Array matrix_values = random_array(float32, {4, 12}, random),
                vector_values = random_array(float32, {12}, random);
    cases.add("known", {x, b}, {matrix_values, vector_values}, sort(reshape(x + b, {3, 16}), 0));
    cases.add("unknown", {u, b}, {matrix_values, vector_values}, sort(reshape(u + b, {3, 16}), 0));
    cases.add("turned", {t}, {random_array(float32, {12, 4}, random)},
              topk(reshape(transpose(t), {3, 16}), 1, 0).values);
    cases.run();
}

TEST_CASE("a short sum of columns that are looked up and padded") {
    PackedCases cases(tested_device());
    Random random(3);
    for (const DType dtype : {int32, int64}) {
        const Expr x = input(float32, Dims{7, 4}, "x"), j = input(dtype, Dims{6}, "j");
        const Expr padded = reshape(pad(x[{colon, j}], {{1, 0}, {0, 2}}, 0), {4, 16});
        const std::vector<Array> values{random_array(float32, {7, 4}, random),
                                        places({6}, 4, random).as(dtype)};
        const std::string of(name_of(dtype));
        cases.add(of + ", sum", {x, j}, values, sum(exp(padded), {0}));
        cases.add(of + ", logsumexp", {x, j}, values, logsumexp(padded, {0}));
    }
    cases.run();
}

TEST_CASE("gradients of several lists of rows of one table, of known and unknown lengths") {
    PackedCases cases(tested_device());
    Random random(5);
    for (const std::int64_t columns : {1, 3, 20})
        for (const bool known : {true, false}) {
            const std::int64_t rows = 90;
            const Expr x = known ? input(float32, Dims{rows, columns}, "x") : matrix("x");
            std::vector<Expr> inputs{x};
            std::vector<Array> values{random_array(float32, {rows, columns}, random)};
            Expr total = sum(sqr(x));
            for (const std::int64_t terms : {70, 300, 5, 90}) {
                const std::string name = "i" + std::to_string(terms);
                const Expr i = known ? input(int32, Dims{terms}, name) : ivector(name);
                inputs.push_back(i);
                values.push_back(places({terms}, rows, random));
                total =
                    total + sum(tanh(x[i])) * static_cast<double>(terms) + sum(sqr(x[i] - x[rows - 1 - i]));
            }
            cases.add(std::to_string(columns) + (known ? ", known" : ", unknown"), inputs, values,
                      grad(total, x));
        }
    cases.run();
}

TEST_CASE("the gradient of a product behind a maximum over an axis of known and unknown length") {
    PackedCases cases(tested_device());
    Random random(9);
    for (const bool known : {true, false})
        for (const std::int64_t points : {1, 5, 40})
            for (const auto& [rows, in, out] :
                 {std::array<std::int64_t, 3>{300, 24, 20}, {90, 40, 33}, {7, 3, 5}}) {
                const Expr x = input(float32, Dims{known ? points : -1, rows, in}, "x"),
                           w = input(float32, Dims{in, out}, "w"), t = input(float32, Dims{rows, out}, "t"),
                           h = max(dot(x, w), {0}), loss = sum(h * t);
                const std::string of =
                    fmt::format("{} {} x {} x {} x {}", known ? "known" : "unknown", points, rows, in, out);
                const std::vector<Array> values{random_array(float32, {points, rows, in}, random),
                                                random_array(float32, {in, out}, random),
                                                random_array(float32, {rows, out}, random)};
                cases.add(of, {x, w, t}, values, grad(loss, w));
                cases.add(of + ", relu", {x, w, t}, values, grad(sum(relu(h) * t), w));
            }
    cases.run(20);
}

TEST_CASE("elements at places that each lane computes from floats") {
    PackedCases cases(tested_device());
    Random random(6);
    for (const bool known : {true, false})
        for (const std::int64_t n : {7, 40, 300, 1030}) {
            const Expr table = input(float32, Dims{500}, "table"),
                       t = known ? input(float32, Dims{3, n}, "t") : matrix("t");
            const Expr first = cast(floor(t), int32), part = t - floor(t);
            const std::vector<Array> values{random_array(float32, {500}, random),
                                            random_array(float32, {3, n}, random, 0, 498.9)};
            const std::string of = fmt::format("{} {}", known ? "known" : "unknown", n);
            cases.add(of + ", nearest", {table, t}, values, table[first]);
            cases.add(of + ", sum", {table, t}, values, sum(table[first], {0}));
            cases.add(of + ", backwards", {table, t}, values, table[499 - cast(floor(t), int64)]);
            cases.add(of + ", interpolated", {table, t}, values,
                      table[first] * (1 - part) + table[first + 1] * part);
            cases.add(of + ", of what is computed", {table, t}, values, exp(table)[first] * t);
        }
    cases.run(60);
}

TEST_CASE("rows that are looked up at places of few bits, which wrap") {
    PackedCases cases(tested_device());
    Random random(8);
    for (const bool known : {true, false}) {
        const Expr x = known ? input(float32, Dims{300}, "x") : vector("x");
        const Expr n = known ? Expr(600) : Expr(2) * x.length(0);
        const std::vector<Array> values{random_array(float32, {300}, random)};
        for (const DType dtype : {uint8, uint16, int16, int32})
            cases.add(fmt::format("{} {}", known ? "known" : "unknown", name_of(dtype)), {x}, values,
                      gather(x, cast(floordiv(range(0, n), 2), dtype)));
    }
    cases.run();
}

// g++ 12 reads another element where a condition is an address.
TEST_CASE("tables of few rows, looked up by conditions") {
    PackedCases cases(tested_device());
    Random random(10);
    for (const std::int64_t rows : {1, 2, 3})
        for (const std::int64_t n : {1, 4, 30, 1000}) {
            const Expr table = input(float32, Dims{rows}, "table"),
                       wide = input(float32, Dims{rows, 3}, "wide"), x = input(float32, Dims{n}, "x"),
                       b = input(boolean, Dims{n}, "b");
            const Expr last = Expr(rows - 1);
            const std::vector<Array> values{random_array(float32, {rows}, random),
                                            random_array(float32, {n}, random),
                                            random_array(boolean, {n}, random)},
                of_rows{random_array(float32, {rows, 3}, random), values[1]};
            const std::string of = fmt::format("{} rows, {}", rows, n);
            for (const DType dtype : {int32, int64, uint8}) {
                const Expr most = cast(last, dtype);
                cases.add(
                    fmt::format("{}, {}", of, name_of(dtype)), {table, x, b}, values,
                    table[minimum(cast(x > 0, dtype), most)] + table[minimum(cast(b, dtype), most)] * x);
            }
            cases.add(of + ", chosen", {table, x}, {values[0], values[1]},
                      table[minimum(where(x > 0, 1, 0), last)]);
            cases.add(of + ", whole rows", {wide, x}, of_rows,
                      wide[minimum(cast(x > 0, int32), cast(last, int32))]);
            cases.add(of + ", a sum", {table, x}, {values[0], values[1]},
                      sum(table[minimum(cast(x > 0, int32), cast(last, int32))]));
        }
    cases.run(60);
}

TEST_CASE("products of rows that are looked up, by a list of unknown length") {
    PackedCases cases(tested_device());
    Random random(11);
    for (const std::int64_t columns : {5, 17, 33, 64})
        for (const std::int64_t n : {2, 40, 257, 600}) {
            const Expr table = input(float32, Dims{300, columns}, "table"), i = ivector("i"),
                       x = input(float32, Dims{-1, columns}, "x");
            const Expr rows = gather(table, i);
            const std::vector<Array> values{random_array(float32, {300, columns}, random),
                                            places({n}, 300, random),
                                            random_array(float32, {n, columns}, random)};
            const std::string of = fmt::format("{} of {}", n, columns);
            cases.add(of + ", with themselves", {table, i}, {values[0], values[1]},
                      dot(transpose(rows), rows));
            cases.add(of + ", with others", {table, i, x}, values, dot(transpose(rows), x * 0.5F));
            cases.add(of + ", of others", {table, i, x}, values, dot(transpose(x), rows));
        }
    cases.run(60);
}
