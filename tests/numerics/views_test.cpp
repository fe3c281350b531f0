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

TEST_CASE("slices that are parts of a concatenation of many") {
    PackedCases cases(tested_device());
    for (const bool known : {false, true})
        for (const int axis : {0, 1}) {
            std::vector<Expr> parts;
            std::vector<Array> values;
            for (std::int64_t k = 0; k < 20; ++k) {
                // Some are empty, and some begin where an empty one does.
                Dims shape{k % 5, 3};
                if (axis == 1) std::swap(shape[0], shape[1]);
                Dims declared = shape;
                if (!known) declared[static_cast<std::size_t>(axis)] = -1;
                parts.push_back(input(float32, declared, "x" + std::to_string(k)));
                values.push_back(sample(float32, shape));
            }
            const Expr whole = concatenate(parts, axis);
            const auto gradients =
                grad(sum(tanh(whole * 2) * whole + exp(-sum(whole, {1 - axis}, {.keepdims = true}))), parts);
            const std::string name = fmt::format("axis {}, lengths {}", axis, known ? "known" : "unknown");
            for (std::size_t k = 0; k < parts.size(); k += 3)
                cases.add(fmt::format("{}, gradient of part {}", name, k), parts, values, gradients[k]);
            const Slice first{0, 4}, inside{3, 9}, one{4, 5};
            for (const Slice& slice : {first, inside, one})
                cases.add(name + ", slice", parts, values,
                          sqr(axis == 0 ? whole[slice] : whole[{Slice{}, slice}]));
        }
    cases.run();
}

TEST_CASE("results that are reshapes of what is computed") {
    PackedCases cases(tested_device());
    for (const Dims& shape : std::vector<Dims>{{6, 20}, {1, 40}, {24, 5}, {3, 4, 10}, {0, 8}}) {
        const Expr x = input(float32, shape, "x");
        const Array value = sample(float32, shape);
        const std::int64_t size = value.size();
        const auto add = [&](const char* what, const Expr& y) {
            cases.add(text(float32, shape, what), {x}, {value}, y);
        };
        const Expr quarter = size / 4, all = size, eighth = size / 8;
        const Expr rows = softmax(reshape(x, {quarter, 4}));
        add("flat", reshape(rows, {all}));
        add("as it was", reshape(rows, std::vector<Expr>(shape.begin(), shape.end())));
        add("column", reshape(sum(rows, {1}), {quarter, 1}));
        add("twice", reshape(reshape(rows, {all}), {eighth, 8}));
        add("both, added", reshape(rows, {all}) + reshape(x, {all}));
        add("of the argument", reshape(x, {all}));
        add("transposed", reshape(transpose(rows), {all}));
    }
    cases.run();
}

TEST_CASE("maps between two reshapes, there and back") {
    PackedCases cases(tested_device());
    for (const bool known : {true, false}) {
        const Dims shape{5, 12, 3, 2};
        const Expr x = input(float32, known ? shape : Dims{-1, 12, 3, 2}, "x"), n = x.length(0);
        const Array value = sample(float32, shape);
        const auto add = [&](const char* what, const Expr& y) {
            const std::string name = fmt::format("{}, {}", what, known ? "known" : "unknown");
            cases.add(name, {x}, {value}, y);
            cases.add(name + ", gradient", {x}, {value}, grad(sum(sin(y)), x));
        };
        for (const std::int64_t groups : {1, 4, 12}) {
            const Expr r = reshape(x, {n, groups, -1}), m = mean(r, {2}, {.keepdims = true}),
                       v = mean(sqr(r - m), {2}, {.keepdims = true});
            add("norm of groups", reshape((r - m) / sqrt(v + 1), {n, 12, 3, 2}));
            add("exp between", reshape(exp(-sqr(r)) * m, {n, 12, 3, 2}));
            add("to another form", reshape((r - m) * 2, {n, 6, 12}));
        }
        const Expr rows = reshape(x, {-1, 6});
        add("other rows", reshape(rows - max(rows, {1}, {.keepdims = true}), {n, 12, 3, 2}));
        add("of two", reshape(reshape(x, {n, 72}) * 2 + reshape(sqr(x), {n, 72}), {n, 12, 3, 2}));
    }
    cases.run();
}

TEST_CASE("maps of products of several axes") {
    PackedCases cases(tested_device());
    for (const bool known : {true, false}) {
        const Dims shape{3, 4, 5, 6};
        const Expr x = input(float32, known ? shape : Dims{-1, -1, 5, 6}, "x"), w = matrix("w"),
                   b = vector("b"), v = matrix("v"),
                   rows = input(float32, known ? Dims{4, 5, 7} : Dims{-1, 5, 7}, "rows");
        const std::vector<Array> values{sample(float32, shape), sample(float32, {6, 7}), sample(float32, {7}),
                                        sample(float32, {7, 2}), sample(float32, {4, 5, 7})};
        const auto add = [&](const char* what, const Expr& y) {
            const std::string name = fmt::format("{}, {}", what, known ? "known" : "unknown");
            cases.add(name, {x, w, b, v, rows}, values, y);
            for (const Expr& of : {x, w, b})
                cases.add(name + ", gradient", {x, w, b, v, rows}, values, grad(sum(sin(y)), of));
        };
        const Expr h = dot(x, w);
        add("bias", tanh(h + b));
        add("two products", dot(sigmoid(h + b) * h, v));
        add("of one column", tanh(h + expand_dims(b, 0)) * 0.5);
        add("and other rows", h * b + rows);
        add("normalised", (h - mean(h, {-1}, {.keepdims = true})) * b);
        add("two of a kind", dot(x, w) * dot(x * 2, w) + b);
        add("a condition", where(gt(h, 0), h + b, h * 0.1));
    }
    cases.run();
}

TEST_CASE("a result and its reshape are two results") {
    const Expr x = input(float32, {-1, 6}, "x");
    const Expr y = softmax(x);
    Function f =
        function({x}, {y, reshape(y, {-1, 3}), reshape(y, {-1}), sum(y, {1})}, {.device = tested_device()});
    const Array value = sample(float32, {5, 6});
    const Results r = f(value);
    CHECK(r[0].shape() == Dims{5, 6});
    CHECK(r[1].shape() == Dims{10, 3});
    CHECK(r[2].shape() == Dims{30});
    CHECK(r[1].to_vector<float>() == r[0].to_vector<float>());
    CHECK(r[2].to_vector<float>() == r[0].to_vector<float>());
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
