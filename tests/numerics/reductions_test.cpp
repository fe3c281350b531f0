// Generated CPU code of reductions against the oracle: axes, empty and long ones, ties and special values.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/numerics/shorthands.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

using Reduce = Expr (*)(const Expr&, const Axes&, ReduceOptions, Where);
struct ReductionKind {
    const char* name;
    Reduce reduce;
    bool of_nothing;  // whether an empty axis has a value
};
const std::vector<ReductionKind> reduction_kinds = {
    {"sum", sum, true},   {"prod", prod, true},      {"max", max, false},
    {"min", min, false},  {"any", any, true},        {"all", all, true},
    {"mean", mean, true}, {"argmax", argmax, false}, {"argmin", argmin, false}};

std::string text_of_axes(const Axes& axes) {
    return fmt::format("{}", text_of(Dims(axes.begin(), axes.end())));
}

}  // namespace

TEST_CASE("reductions over every choice of axes") {
    PackedCases cases(tested_device());
    Random random(1);
    const std::vector<Axes> choices = {{0},    {1},    {2},       {3},     {0, 1}, {0, 2},
                                       {1, 3}, {2, 3}, {0, 1, 2}, {-1, 0}, {}};
    std::size_t turn = 0;
    for (const Axes& axes : choices)
        for (const Dims& shape : {Dims{2, 3, 4, 5}, Dims{1, 33, 2, 1}, Dims{3, 1, 1, 40}})
            for (std::size_t k = 0; k < 2; ++k) {
                // Kinds in turn, so that all meet all axes.
                const ReductionKind& kind = reduction_kinds[turn++ % reduction_kinds.size()];
                const Expr x = turn % 2 ? tensor4("x") : input(float32, shape, "x");
                const bool keepdims = turn % 3 == 0;
                cases.add(fmt::format("{} {} over {}", kind.name, text_of(shape), text_of_axes(axes)), {x},
                          {random_array(float32, shape, random, -2, 2)},
                          kind.reduce(x * 0.5, axes, {.keepdims = keepdims}, {}));
            }
    cases.run();
}

TEST_CASE("reductions of nothing, by a length of the call and by one that is known") {
    PackedCases cases(tested_device());
    const std::int64_t n = 5;
    for (const ReductionKind& kind : reduction_kinds) {
        const Expr x = matrix("x"), known = input(float32, {0, 4}, "known"), s = lscalar("s");
        const std::vector<Expr> inputs = {x, known, s};
        const std::vector<Array> values = {Array(float32, {n, 0}), Array(float32, {0, 4}),
                                           Array(std::int64_t{2})};
        const auto add = [&](const char* what, const Expr& of, const Axes& axes) {
            cases.add(fmt::format("{} of {}", kind.name, what), inputs, values,
                      kind.reduce(of + 1, axes, {}, {}));
        };
        add("no columns, the other axis", x, {0});
        add("no known rows, the other axis", known, {1});
        if (!kind.of_nothing) continue;
        add("no columns", x, {1});
        add("no columns, all axes", x, {});
        add("no known rows", known, {0});
        add("no known rows, all axes", known, {});
        add("an empty slice", x[Slice{0, 0}], {0});
        add("an empty slice of the call", known[{colon, Slice{s, s}}], {1});
        add("a slice past the end", known[{colon, Slice{4, 9}}], {});
        add("at most one row of none", known[Slice{0, 1}], {});
    }
    cases.run();
}

TEST_CASE("products and convolutions of nothing are zero") {
    PackedCases cases(tested_device());
    Random random(31);
    const Expr x = input(float32, {16, 0}, "x"), y = input(float32, {0, 31}, "y"),
               whole = input(float32, {16, 8}, "whole"), rows = input(float32, 2, "rows"),
               columns = input(float32, 2, "columns"), images = input(float32, {2, 0, 9, 8}, "images"),
               filters = input(float32, {5, 0, 3, 3}, "filters");
    const Expr taken = input(float32, {-1, 6}, "taken"), beside = input(float32, {-1, 20}, "beside");
    const std::vector<Expr> in{x, y, whole, rows, columns, images, filters, taken, beside};
    const std::vector<Array> values = {
        zeros({16, 0}, float32),      zeros({0, 31}, float32), random_array(float32, {16, 8}, random),
        zeros({16, 0}, float32),      zeros({0, 31}, float32), zeros({2, 0, 9, 8}, float32),
        zeros({5, 0, 3, 3}, float32), zeros({0, 6}, float32),  zeros({0, 20}, float32)};
    const Expr none = floor(whole[{colon, Slice{.start = 8}}] / (whole[{0, 0}] + 1));
    cases.add("product", in, values, dot(x, y));
    cases.add("product of a computed factor", in, values, dot(none, y));
    cases.add("product and a map", in, values, tanh(dot(x, y) + 1));
    cases.add("product by lengths of the call", in, values, dot(rows, columns));
    cases.add("gradient of a product", in, values, grad(sum(dot(x, y)), x));
    cases.add("gradient by the other factor", in, values, grad(sum(sqr(dot(x, y))), y));
    cases.add("row sums of a product", in, values, sum(dot(x, y), {1}));
    const Slice at_most_one{.stop = 1};
    cases.add("outer product of at most one row", in, values,
              dot(transpose(tanh(taken[at_most_one])), beside[at_most_one] * 2));
    cases.add("convolution", in, values, conv2d(images, filters));
    cases.add("pooled convolution", in, values, max_pool(conv2d(images, filters) + 1, 2));
    cases.add("gradient of filters", in, values, grad(sum(sqr(conv2d(images, filters))), filters));
    cases.add("gradient of images", in, values, grad(sum(sqr(conv2d(images, filters))), images));
    cases.run(1);
    cases.run();
}

TEST_CASE("the first of equal extremes, NaN and infinities") {
    PackedCases cases(tested_device());
    Random random(3);
    std::size_t turn = 0;
    for (const DType dtype : all_dtypes)
        for (const ReductionKind& kind : reduction_kinds) {
            const std::string name = kind.name;
            if (name == "sum" || name == "prod" || name == "mean") continue;  // inf - inf, rounding
            const Dims shape = turn++ % 2 ? Dims{3, 100} : Dims{100, 3};
            const Expr x = input(dtype, 2, "x"), y = input(dtype, 2, "y");
            const std::string what = fmt::format("{} {} {}", kind.name, name_of(dtype), text_of(shape));
            cases.add(what + ", special values", {x}, {special_array(dtype, shape, random, 0)},
                      kind.reduce(x, {shape[0] < 50 ? 1 : 0}, {}, {}));
            cases.add(what + ", ties", {y}, {random_array(boolean, shape, random).as(dtype)},
                      kind.reduce(y, {}, {}, {}));
        }
    cases.run(40);
}

// Rows in lanes: every lane has a candidate of its own, some have none, and the first of all is asked for.
TEST_CASE("positions in rows of every length") {
    PackedCases cases(tested_device());
    Random random(6);
    std::size_t turn = 0;
    for (const DType dtype : all_dtypes)
        for (const std::int64_t n : {16, 17, 48, 64, 65, 130, 256, 300, 1024}) {
            const Dims shape{4, n};
            const Expr known = input(dtype, shape, "known"), unknown = input(dtype, 2, "unknown");
            const Array ties = random_array(dtype, shape, random, 0, 3),
                        special = special_array(dtype, shape, random, 0),
                        same = Array(std::vector<float>(static_cast<std::size_t>(4 * n), -INFINITY), shape);
            const std::string what = fmt::format("{} {}", name_of(dtype), text_of(shape));
            const Reduce reduce = turn % 2 ? Reduce(argmin) : Reduce(argmax);
            const Expr& x = turn++ % 3 ? known : unknown;
            cases.add(what + ", ties", {x}, {ties}, reduce(x, {1}, {}, {}));
            const Expr y = input(dtype, shape, "y"), z = input(float64, 2, "z");
            cases.add(what + ", special values", {y}, {special}, reduce(y, {1}, {}, {}));
            cases.add(what + ", with the extreme itself", {y}, {special},
                      cast(reduce(y, {1}, {}, {}), float64) + cast(max(y, {1}), float64));
            if (dtype == float64)
                cases.add(what + ", nothing but infinities", {z}, {same.as(float64)}, reduce(z, {1}, {}, {}));
        }
    cases.run(60);
}

// Results side by side: of short rows, whose lanes meet as vectors, and of chunks of rows, row by row.
TEST_CASE("reductions of many short rows") {
    PackedCases cases(tested_device());
    Random random(7);
    std::size_t turn = 0;
    for (const DType dtype : {float32, int32, float64, int8, bfloat16})
        for (const auto& [shape, axes] : std::vector<std::pair<Dims, Axes>>{{{300, 64}, {1}},
                                                                            {{65, 17}, {1}},
                                                                            {{70, 300}, {1}},
                                                                            {{3, 50, 40}, {2}},
                                                                            {{5, 9, 23}, {2}},
                                                                            {{6, 40, 4, 8}, {0, 1}},
                                                                            {{33, 6, 20}, {0}},
                                                                            {{8, 600, 256}, {0, 2}},
                                                                            {{32, 20, 64, 30}, {0, 2}}}) {
            const ReductionKind& kind = reduction_kinds[turn++ % reduction_kinds.size()];
            if (std::string(kind.name) == "prod") continue;
            const Array x_values = random_array(dtype, shape, random, -3, 3);
            const int rank = static_cast<int>(shape.size());
            for (const Expr& x : {input(dtype, shape, "known"), input(dtype, rank, "unknown")}) {
                const std::string what = fmt::format("{} {} {} over {}", kind.name, name_of(dtype),
                                                     text_of(shape), text_of_axes(axes));
                cases.add(what, {x}, {x_values}, kind.reduce(x, axes, {}, {}));
                // Others that need the same rows, and positions beside extremes.
                cases.add("argmax beside " + what, {x}, {x_values},
                          cast(argmax(x, axes), float64) + cast(max(x, axes), float64));
                if (rank == 2 && is_float(dtype) && bits_of(dtype) >= 32)
                    cases.add("normalised by " + what, {x}, {x_values},
                              x - cast(kind.reduce(x, axes, {.keepdims = true}, {}), dtype));
            }
        }
    cases.run(40);
}

TEST_CASE("forms of one reduction are one kernel") {
    const auto kernel_of = [](const Expr& x, const Expr& y) {
        const Function f = function({x}, {y}, {.device = tested_device()});
        REQUIRE(f.kernels().size() == 1);
        return f.kernels()[0].name;
    };
    for (const ReductionKind& kind : reduction_kinds) {
        const bool position = std::string(kind.name) == "argmax" || std::string(kind.name) == "argmin";
        const Expr x = input(float32, {1024, 40, 48}, "x"), y = input(float32, {1024, 1920}, "y"),
                   z = input(float32, {16, 64, 40, 48}, "z");
        const auto over = [&](const Expr& of, const Axes& axes) { return kind.reduce(of, axes, {}, {}); };
        const std::string rows = kernel_of(y, over(y, {1}));
        INFO(kind.name);
        CHECK(kernel_of(x, over(x, {1, 2})) == rows);
        CHECK(kernel_of(x, over(reshape(x, {1024, 1920}), {1})) == rows);
        CHECK(kernel_of(x, over(flatten(x, 2), {-1})) == rows);
        CHECK(kernel_of(y, over(reshape(y, {1024, 30, 64}), {1, 2})) == rows);
        CHECK(kernel_of(z, over(reshape(z, {1024, 5, 384}), {1, 2})) == rows);
        if (position) continue;  // the order of axes numbers the elements
        CHECK(kernel_of(x, over(transpose(x, {0, 2, 1}), {1, 2})) == rows);
        CHECK(kernel_of(x, over(transpose(x, {2, 0, 1}), {0, 2})) == rows);
        CHECK(kernel_of(y, over(flip(y, 1), {1})) == rows);
    }
}

TEST_CASE("long reductions") {
    PackedCases cases(tested_device());
    Random random(4);
    const std::int64_t n = 1'000'003;
    for (const DType dtype : {int8, uint8, int32, float32, float64, boolean}) {
        const Array one = random_array(dtype, {n}, random, 0, 100),
                    tall = random_array(dtype, {n / 16, 3}, random, 0, 9),
                    wide = random_array(dtype, {3, n / 16}, random, 0, 9);
        const Expr x = input(dtype, 1, "x"), t = input(dtype, 2, "t"), w = input(dtype, 2, "w");
        for (const ReductionKind& kind : reduction_kinds) {
            if (std::string(kind.name) == "prod") continue;  // overflows
            const std::string what = fmt::format("{} {}", kind.name, name_of(dtype));
            cases.add(what, {x}, {one}, kind.reduce(x, {}, {}, {}));
            cases.add(what + " of columns", {t}, {tall}, kind.reduce(t, {0}, {}, {}));
            cases.add(what + " of rows", {w}, {wide}, kind.reduce(w, {1}, {}, {}));
        }
        if (dtype == boolean) continue;
        // A chain before, one after, and two reductions that need each other.
        const Expr f = cast(x, is_float(dtype) ? dtype : float32);
        cases.add(fmt::format("deviation of {}", name_of(dtype)), {x}, {one}, sqrt(mean(sqr(f - mean(f)))));
    }
    cases.run(20);
}

// Too short for chunks of their own, and enough of them together.
TEST_CASE("few rows of some thousand elements") {
    PackedCases cases(tested_device());
    Random random(12);
    for (const Dims& shape : {Dims{7, 10000}, Dims{5, 14001}, Dims{32, 2100}, Dims{2, 2, 16383}}) {
        const int last = static_cast<int>(shape.size()) - 1;
        const Expr x = input(float32, shape, "x"), w = input(float32, {shape.back()}, "w"),
                   b = input(int8, shape, "b");
        const Array values = random_array(float32, shape, random), bytes = random_array(int8, shape, random),
                    weights = random_array(float32, {shape.back()}, random);
        const std::string of = " " + text_of(shape);
        cases.add("sum" + of, {x}, {values}, sum(x, {last}));
        cases.add("mean of squares" + of, {x}, {values}, mean(sqr(x), {last}));
        cases.add("maximum of bytes" + of, {b}, {bytes}, max(cast(b, float32) * 0.5, {last}));
        cases.add("sum of columns" + of, {x}, {values}, sum(transpose(x), {0}));
        cases.add("position" + of, {x}, {values}, argmax(x, {last}));
        if (last == 1) cases.add("product" + of, {x, w}, {values, weights}, dot(x, w));
    }
    cases.run();
}

TEST_CASE("the mean of many bytes is right") {
    // 300,000,000 elements of 0.1 or so would lose half of their digits in one float32 accumulator.
    const std::int64_t rows = 3000, columns = 10'000;
    Array bytes(int8, {rows, columns});
    auto* to = static_cast<std::int8_t*>(bytes.mutable_data());
    std::int64_t total = 0;
    for (std::int64_t i = 0; i < rows * columns; ++i)
        total += to[i] = static_cast<std::int8_t>(i * 7 % 251 - 100);
    const Expr x = input(int8, 2, "x");
    Function f = function({x}, {mean(x), sum(x), mean(cast(x, float32) / 128)}, {.device = tested_device()});
    const Results r = f(bytes);
    const double expected = static_cast<double>(total) / static_cast<double>(rows * columns);
    CHECK(std::abs(r[0].at(0) - expected) <= 2e-7 * std::abs(expected));
    CHECK(r[1].item<std::int64_t>() == total);
    CHECK(std::abs(r[2].at(0) - expected / 128) <= 1e-6 * std::abs(expected / 128));
}

TEST_CASE("products of matrices that are computed, sliced or shared by both sides") {
    PackedCases cases(tested_device());
    Random random(5);
    for (const DType dtype : {float32, float64})
        for (const Dims& size : {Dims{16, 16}, Dims{3, 40}, Dims{65, 9}}) {
            const Expr x = matrix("x", dtype), known = input(dtype, size, "known");
            const std::vector<Expr> inputs = {x, known};
            const std::vector<Array> values = {random_array(dtype, size, random),
                                               random_array(dtype, size, random)};
            for (const Expr& m : inputs) {
                const Expr a = m / (sqr(m) + 0.5);
                const std::string what = fmt::format("{} {}", name_of(dtype), text_of(size));
                cases.add(what + " with its transpose", inputs, values, dot(a, transpose(a)));
                cases.add(what + " transposed with itself", inputs, values, dot(transpose(a), a));
                cases.add(what + " sliced", inputs, values,
                          dot(a[{colon, Slice{1, 8}}], transpose(a)[Slice{0, 7}]));
                cases.add(what + " three", inputs, values, dot(tanh(dot(a, transpose(m))), a));
                cases.add(what + " gradient", inputs, values, grad(sum(sqr(dot(a, transpose(a)))), m));
            }
        }
    for (const auto& [left, right] : std::vector<std::pair<Dims, Dims>>{{{2, 3, 4}, {4, 5}},
                                                                        {{2, 3, 4}, {2, 4, 3}},
                                                                        {{4}, {2, 4, 3}},
                                                                        {{1, 2, 3, 4}, {4}},
                                                                        {{0, 3, 4}, {4, 2}}}) {
        const Expr a = input(float32, static_cast<int>(left.size()), "a"),
                   b = input(float32, static_cast<int>(right.size()), "b");
        const std::vector<Array> values = {random_array(float32, left, random),
                                           random_array(float32, right, random)};
        const Expr y = dot(a, b);
        const std::string what = text_of(left) + " with " + text_of(right);
        cases.add(what, {a, b}, values, y);
        cases.add(what + " gradient left", {a, b}, values, grad(sum(y * cos(y)), a));
        cases.add(what + " gradient right", {a, b}, values, grad(sum(y * cos(y)), b));
    }
    cases.run();
}

TEST_CASE("sums of many columns are added in the order of rows, whatever part of them a task has") {
    Random random(31);
    for (const Dims& shape : {Dims{37, 1024}, Dims{12, 1300}, Dims{40, 2051}}) {
        const Array values = random_array(float32, shape, random, -1, 1);
        const Expr x = input(float32, shape, "x");
        Array expected(float32, {shape[1]});
        auto* sums = static_cast<float*>(expected.mutable_data());
        for (std::int64_t column = 0; column < shape[1]; ++column) sums[column] = 0;
        for (std::int64_t i = 0; i < values.size(); ++i)
            sums[i % shape[1]] += static_cast<const float*>(values.data())[i];
        const Results r =
            function({x}, {sum(x, {0})}, {.device = tested_device()}).call(std::vector<Array>{values});
        INFO(shape[0] << " rows of " << shape[1]);
        REQUIRE(difference(r[0], expected) == "");
    }
}

namespace {

// A row times a column: in 16 lanes, which meet as a tree, or term by term.
template <class T>
T product_in_order(const T* row, const T* column, std::int64_t length, std::int64_t step, bool in_lanes) {
    std::vector<T> parts(in_lanes ? 16 : 1, T(0));
    for (std::int64_t k = 0; k < length; ++k) {
        T& part = parts[static_cast<std::size_t>(k) % parts.size()];
        part = std::fma(row[k], column[k * step], part);
    }
    for (std::size_t w = parts.size() / 2; w > 0; w /= 2)
        for (std::size_t l = 0; l < w; ++l) parts[l] += parts[l + w];
    return parts[0];
}

template <class T>
Array products_in_order(const Array& x, const Array& w) {
    const std::int64_t rows = x.shape()[0], length = x.shape()[1], columns = w.shape()[1];
    Array r(x.dtype(), {rows, columns});
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j)
            static_cast<T*>(r.mutable_data())[i * columns + j] =
                product_in_order(static_cast<const T*>(x.data()) + i * length,
                                 static_cast<const T*>(w.data()) + j, length, columns, columns == 1);
    return r;
}

}  // namespace

TEST_CASE("rows times one column are added in lanes, times two columns in order, whatever their length") {
    for (const DType dtype : {float32, float64}) {
        std::vector<Input> inputs;
        std::vector<Expr> products;
        std::vector<Array> values, expected;
        Random random(53);
        for (const std::int64_t length : {16, 17, 18, 20, 31, 32, 33, 63, 65, 100})
            for (const std::int64_t columns : {1, 2}) {
                const Array x = random_array(dtype, {37, length}, random, -1, 1),
                            w = random_array(dtype, {length, columns}, random, -1, 1);
                inputs.emplace_back(input(dtype, {-1, length}, "x"));
                inputs.emplace_back(input(dtype, {length, columns}, "w"));
                products.push_back(dot(inputs[inputs.size() - 2].variable, inputs.back().variable));
                values.insert(values.end(), {x, w});
                expected.push_back(dtype == float32 ? products_in_order<float>(x, w)
                                                    : products_in_order<double>(x, w));
            }
        const Results r = function(inputs, products, {.device = tested_device()}).call(values);
        for (std::size_t k = 0; k < expected.size(); ++k) {
            INFO(name_of(dtype) << ", " << text_of(values[2 * k + 1].shape()));
            CHECK(difference(r[k], expected[k]) == "");
        }
    }
}

// Some versions of g++ confuse the elements of sums that they turn into vectors (device/base.h, B_IN_ORDER).
TEST_CASE("sums and products of elements from the end, or of columns before rows") {
    PackedCases cases(tested_device());
    Random random(51);
    for (const DType dtype : {float32, float64})
        for (const Dims& shape : {Dims{64}, Dims{24}, Dims{7}, Dims{40, 3}, Dims{5, 64}, Dims{12, 2, 4}}) {
            const Expr x = input(dtype, shape, "x");
            const std::vector<Array> values = {random_array(dtype, shape, random, 0.8, 1.2)};
            const auto add = [&](const std::string& what, const Expr& of, const Axes& axes) {
                const std::string name = fmt::format("{} {} {}", name_of(dtype), text_of(shape), what);
                cases.add(name + ", sum", {x}, values, sum(of, axes));
                cases.add(name + ", product", {x}, values, prod(of, axes));
                cases.add(name + ", sum of squares", {x}, values, sum(exp(sqr(of)), axes));
            };
            const int last = static_cast<int>(shape.size()) - 1;
            Expr turned = x;
            for (int axis = 0; axis <= last; ++axis) turned = flip(turned, axis);
            add("from the end", turned, {});
            add("rows from the end", flip(x, last), {last});
            add("every second from the end", flatten(x)[Slice{.step = -2}], {});
            add("turned", transpose(x), {});
            add("turned, from the end", flip(transpose(x), last), {});
            if (last == 2) add("blocks turned", transpose(x, {0, 2, 1}), {1, 2});
            if (last == 1) {
                const Expr planes = input(dtype, {4, 3, 9, 20}, "planes"), shift = input(dtype, {3}, "shift");
                const Expr moved = planes - reshape(shift, {3, 1, 1});
                const Array all = random_array(dtype, {4, 3, 9, 20}, random, 0.8, 1.2),
                            of_planes = random_array(dtype, {3}, random, 0.1, 0.2);
                cases.add("columns of all planes", {planes, shift}, {all, of_planes}, sum(moved, {0, 1, 2}));
                cases.add("columns of all planes, from the end", {planes, shift}, {all, of_planes},
                          sum(flip(moved, 2), {0, 1, 2}));
            }
        }
    cases.run();
}

TEST_CASE("sums over an unknown number of short rows are added up in parts") {
    const std::size_t n = tested_device() == std::string("cpu") ? 300'000 : 20'000, m = 9;
    Random random(77);
    const auto length = static_cast<std::int64_t>(n);
    const Array z = random_array(float32, {length, m}, random, 0, 1),
                y = random_array(float32, {length}, random, 0, 1),
                w = random_array(float32, {m}, random, 0, 1);
    const auto of = [](const Array& a) { return a.as(float64).to_vector<double>(); };
    const std::vector<double> zs = of(z), ys = of(y), ws = of(w);
    double scaled = 0, by_row = 0, apart = 0, steps = 0;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < m; ++j) {
            const double v = zs[i * m + j];
            scaled += v * ys[i];
            by_row += v * ws[j];
            apart += (v - ys[i]) * (v - ys[i]);
            if (j > 0) steps += std::abs(v - zs[i * m + j - 1]);
        }
    const Expr a = matrix("a"), b = vector("b"), c = vector("c"), column = expand_dims(b, 1);
    const Expr later = a[{colon, Slice{1, {}}}], before = a[{colon, Slice{{}, -1}}];
    Function f = function(
        {a, b, c}, {sum(a * column), sum(a * c), sum(sqr(a - column)), sum(abs(later - before))}, here());
    for (int again = 0; again < 2; ++again) {
        const Results got = f(z, y, w);
        CHECK(got[0].at(0) == Approx(scaled).epsilon(1e-6));
        CHECK(got[1].at(0) == Approx(by_row).epsilon(1e-6));
        CHECK(got[2].at(0) == Approx(apart).epsilon(1e-6));
        CHECK(got[3].at(0) == Approx(steps).epsilon(1e-6));
    }
    const Results none = f(zeros({0, 9}), zeros({0}), w), one = f(ones({1, 9}), ones({1}), zeros({9}));
    CHECK(none[0].at(0) == 0);
    CHECK(one[0].at(0) == 9);
}
