// Generated CPU code of views, indexing, reductions and dot against the oracle: dtypes and awkward shapes.
#include <fmt/format.h>

#include "tests/numerics/shorthands.h"
#include "tests/support/nest_interpreter.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

Array number(std::int64_t x) { return Array(x); }

std::string text(DType dtype, const Dims& shape, const char* what) {
    return std::string(name_of(dtype)) + " " + text_of(shape) + " " + what;
}

using Reduce = Expr (*)(const Expr&, const Axes&, ReduceOptions, Where);
const std::vector<std::pair<const char*, Reduce>> reductions_by_name = {
    {"sum", sum}, {"prod", prod},     {"max", max},       {"min", min},  {"any", any},
    {"all", all}, {"argmax", argmax}, {"argmin", argmin}, {"mean", mean}};

}  // namespace

TEST_CASE("views of every dtype") {
    PackedCases cases(tested_device());
    for (const DType dtype : all_dtypes) {
        const Dims shape{5, 7};
        const Expr x = input(dtype, 2, "x"), s = lscalar("s"), i = lvector("i");
        const Array value = sample(dtype, shape), start = number(2);
        const Array indices(std::vector<std::int64_t>{4, 0, 4, 1});
        const auto add = [&](const char* what, const Expr& y) {
            cases.add(text(dtype, shape, what), {x, s, i}, {value, start, indices}, y);
        };
        add("transpose", transpose(x));
        add("flatten", flatten(x));
        add("reshape", reshape(x, {7, 5}));
        add("flip", flip(x, 1));
        add("steps", x[{Slice{.step = -2}, Slice{1, 6, 2}}]);
        add("pad", pad(x, {{1, 2}, {0, 1}}, 1));
        add("concatenate columns", concatenate({x, x, flip(x, 0)}, 1));
        add("concatenate rows", concatenate({x, x}, 0));
        add("gather", x[i]);
        add("rows", rows(x, s, 3));
        add("moving slice", x[Slice{s, s + 4}]);
        add("number", x[{s, -1}]);
        add("broadcast", broadcast_to(expand_dims(x, 1), {5, 2, 7}));
    }
    cases.run();
}

TEST_CASE("views of awkward shapes") {
    PackedCases cases(tested_device());
    for (const Dims& shape : std::vector<Dims>{{1, 1}, {1, 65}, {33, 1}, {3, 17}, {0, 4}, {4, 0}}) {
        const Expr x = matrix("x"), s = lscalar("s");
        const auto add = [&](const char* what, const Expr& y) {
            cases.add(text(float32, shape, what), {x, s}, {sample(float32, shape), number(0)}, y);
        };
        add("transpose", transpose(x) * 2);
        add("flatten", flatten(x) + 1);
        add("flip", flip(x, 0));
        add("steps", x[{Slice{.step = -2}, Slice{1, {}, 3}}]);
        add("pad", pad(x, {{1, 2}, {3, 1}}, -1));
        add("concatenate", concatenate({x, x * 2, x[Slice{0, 1}]}, 0));
        add("moving slice", x[Slice{s - 1, s + 2}]);
        add("pad computed rows", pad(exp(x), {{0, 2}, {1, 2}}, 2) + 1);
        add("pad an empty slice", pad(exp(x[{Slice{.step = -1}, Slice{0, 0}}]), {{0, 2}, {1, 2}}));
        add("chain", transpose(pad(x[Slice{s, s + 2}], {{0, 0}, {1, 1}}))[Slice{.step = 3}]);
    }
    cases.run();
}

// Two axes around matrices that are turned are walked as one, of whose places some share elements.
TEST_CASE("turned matrices of a part of an image") {
    PackedCases cases(tested_device());
    for (const std::int64_t channels : {2, 3, 4})
        for (const Dims& matrix : std::vector<Dims>{{8, 9}, {9, 8}, {16, 16}, {33, 20}, {2, 70}}) {
            const Dims shape{5, channels, matrix[0], matrix[1]};
            const Expr x = input(float32, shape, "x"), n = lscalar("n");
            const Array value = sample(float32, shape), start = number(1);
            const auto add = [&](const char* what, const Expr& y) {
                cases.add(text(float32, shape, what), {x, n}, {value, start}, y);
            };
            const Expr turned = transpose(x, {0, 1, 3, 2}), halves = tanh(x);
            add("turned", turned[Slice{1, 3}]);
            add("concatenated", concatenate({turned[Slice{1, 3}], turned[Slice{2, 4}]}, 0));
            add("between sums", sum(transpose(halves[Slice{1, 3}], {0, 1, 3, 2}), {3}) + n * 0);
            add("as rows", reshape(turned[Slice{3, 5}], {2 * channels, matrix[0] * matrix[1]}));
        }
    cases.run();
}

TEST_CASE("reductions of every dtype and of awkward shapes") {
    PackedCases cases(tested_device());
    const auto add = [&](DType dtype, const Dims& shape, bool may_be_empty) {
        const Expr x = input(dtype, 2, "x");
        for (const auto& [name, reduce] : reductions_by_name) {
            const bool chooses = std::string(name).front() == 'm' || std::string(name).find("arg") == 0;
            for (const Axes& axes : std::vector<Axes>{{}, {0}, {1}}) {
                if (may_be_empty && chooses && std::string(name) != "mean") continue;
                cases.add(text(dtype, shape, name), {x}, {sample(dtype, shape)}, reduce(x, axes, {}, {}));
            }
        }
    };
    for (const DType dtype : all_dtypes) add(dtype, {5, 7}, false);
    for (const Dims& shape : std::vector<Dims>{{1, 1}, {1, 67}, {130, 1}, {3, 33}})
        add(float32, shape, false);
    add(float32, {0, 3}, true);
    cases.run();
}

TEST_CASE("dot of awkward shapes") {
    PackedCases cases(tested_device());
    for (const DType dtype : {float32, float64})
        for (const Dims& size : std::vector<Dims>{
                 {1, 1, 1}, {3, 5, 2}, {1, 70, 9}, {17, 1, 33}, {64, 32, 48}, {0, 3, 2}, {2, 0, 3}}) {
            const Expr a = matrix("a", dtype), b = matrix("b", dtype), u = vector("u", dtype),
                       v = vector("v", dtype);
            const std::vector<Expr> inputs = {a, b, u, v};
            const std::vector<Array> values = {sample(dtype, {size[0], size[1]}),
                                               sample(dtype, {size[1], size[2]}, 2),
                                               sample(dtype, {size[1]}, 3), sample(dtype, {size[1]}, 4)};
            cases.add(text(dtype, size, "matrices"), inputs, values, dot(a, b));
            cases.add(text(dtype, size, "transposed"), inputs, values, dot(transpose(b), transpose(a)));
            cases.add(text(dtype, size, "vector right"), inputs, values, dot(a, v));
            cases.add(text(dtype, size, "vector left"), inputs, values, dot(u, b));
            cases.add(text(dtype, size, "vectors"), inputs, values, dot(u, v));
        }
    cases.run();
}

TEST_CASE("rows by a matrix of numbers, and products of elements by a long vector of them") {
    PackedCases cases(tested_device());
    const auto numbers = [](const Dims& shape) {
        Array x(int32, shape);
        auto* to = static_cast<std::int32_t*>(x.mutable_data());
        for (std::int64_t k = 0; k < x.size(); ++k) to[k] = static_cast<std::int32_t>(k * 3 % 5);
        return x;
    };
    for (const Dims& shape : std::vector<Dims>{{3, 4}, {1, 9}, {0, 4}, {70, 3}}) {
        const Expr x = input(float32, Dims{5, 7}, "x"), i = imatrix("i");
        cases.add("rows " + text_of(shape), {x, i}, {sample(float32, {5, 7}), numbers(shape)}, x[i]);
    }
    const Expr x = input(float32, Dims{5}, "x"), i = ivector("i");
    for (const std::int64_t rows : {5, 300}) {
        const Expr parts = input(float32, Dims{2, 3, 400}, "parts"), j = ivector("j");
        const Expr w = input(float32, Dims{400, 5}, "w"), chosen = reshape(parts, {6, 400})[j];
        const std::vector<Array> values = {sample(float32, {2, 3, 400}), numbers({rows}),
                                           sample(float32, {400, 5}, 2)};
        cases.add("rows of a reshape", {parts, j, w}, values, chosen * 2);
        cases.add("rows of a reshape in a product", {parts, j, w}, values, dot(chosen, w));
        cases.add("rows of a reshape in a sum", {parts, j, w}, values, sum(chosen * cos(chosen), {0}));
    }
    cases.add("sum of products", {x, i}, {sample(float32, {5}), numbers({70000})}, sum(x[i] * exp(x[i])));
    cases.run();
}

TEST_CASE("gathered rows as one long axis: neighbours share the number of their row") {
    PackedCases cases(tested_device());
    Random random(41);
    for (const std::int64_t width : {2, 3, 4, 7}) {
        const Expr table = input(float32, {5, width}, "table"), numbers = input(int64, {8}, "numbers"),
                   many = input(int64, {-1}, "many");
        const std::vector<Expr> in{table, numbers, many};
        const std::vector<Array> values = {random_array(float32, {5, width}, random),
                                           random_array(int64, {8}, random, 0, 4),
                                           random_array(int64, {8}, random, 0, 4)};
        for (const Expr& n : {numbers, many}) {
            const Expr long_row = reshape(gather(table, n), {-1}), again = expand_dims(long_row, 0);
            const std::string name = fmt::format("{} columns", width);
            cases.add(name, in, values, sqr(long_row) + 1);
            cases.add(name + ", twice", in, values, tanh(broadcast_to(again, {2, 8 * width}) - sqr(again)));
        }
    }
    cases.run(1);
}

TEST_CASE("gradients of views, reductions and dot") {
    PackedCases cases(tested_device());
    const Array value =
        Array(std::vector<double>{0.5, -1, 2, 3, 0.25, -0.75, 1.5, 2.5, -2, 4, 1, -3}, {4, 3});
    for (const DType dtype : {float32, float64}) {
        const Expr x = matrix("x", dtype), s = lscalar("s"), i = ivector("i");
        const Array indices(std::vector<std::int32_t>{3, 0, 3});
        const auto add = [&](const char* what, const Expr& y) {
            cases.add(text(dtype, {4, 3}, what), {x, s, i}, {value.as(dtype), number(1), indices},
                      grad(sum(sqr(y)), x));
        };
        add("gather", x[i]);
        add("rows", rows(x, s, 2));
        add("moving slice", x[Slice{s, s + 5}]);
        add("steps", x[{Slice{.step = -2}, Slice{0, 3, 2}}]);
        add("concatenate", concatenate({x, 2 * x}, 1));
        add("pad", pad(x, {{1, 1}, {0, 2}}, 3));
        add("flip and transpose", transpose(flip(x, 0)));
        add("prod", prod(x, {1}));
        add("max", max(x, {0}));
        add("min", min(x));
        add("mean", mean(x, {1}));
        add("dot", dot(x, transpose(x)));
        add("dot with a vector", dot(x, x[0]));
    }
    cases.run();
}
