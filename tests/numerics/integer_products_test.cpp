// Products of integers are exact: sums of products in 64 bits, which wrap around as sums do.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

using Integers64 = std::vector<std::int64_t>;  // those of uint64 by their bits

bool counts_up(DType t) { return t == uint8 || t == uint16 || t == uint32 || t == uint64; }

// Over the whole range of the dtype; of 64 bits, products that wrap around are among them.
Integers64 whole_range(DType dtype, std::int64_t count, Random& random) {
    Integers64 list(static_cast<std::size_t>(count));
    for (std::int64_t& x : list) {
        x = static_cast<std::int64_t>(random.bits());
        const int rest = 64 - 8 * static_cast<int>(bytes_of(dtype));
        if (dtype == boolean)
            x &= 1;
        else if (counts_up(dtype))
            x = static_cast<std::int64_t>(static_cast<std::uint64_t>(x) >> rest);
        else
            x >>= rest;
    }
    return list;
}

Array array_of(const Integers64& list, const Dims& shape, DType dtype) {
    if (dtype != uint64) return Array(list, shape).as(dtype);
    return Array(std::vector<std::uint64_t>(list.begin(), list.end()), shape);
}

Integers64 numbers_of(const Array& x) {
    if (x.dtype() != uint64) return x.to_vector<std::int64_t>();
    const std::vector<std::uint64_t> list = x.to_vector<std::uint64_t>();
    return {list.begin(), list.end()};
}

// [h, m, k] times [h, k, n], modulo 2^64.
Integers64 products(const Integers64& a, const Integers64& b, std::int64_t h, std::int64_t m, std::int64_t k,
                    std::int64_t n) {
    Integers64 r;
    for (std::int64_t p = 0; p < h; ++p)
        for (std::int64_t i = 0; i < m; ++i)
            for (std::int64_t j = 0; j < n; ++j) {
                std::uint64_t sum = 0;
                for (std::int64_t t = 0; t < k; ++t)
                    sum += static_cast<std::uint64_t>(a[(p * m + i) * k + t]) *
                           static_cast<std::uint64_t>(b[(p * k + t) * n + j]);
                r.push_back(static_cast<std::int64_t>(sum));
            }
    return r;
}

struct ProductLengths {
    std::int64_t m, k, n;
};

}  // namespace

TEST_CASE("products of integers are exact, whatever their dtypes") {
    Random random(11);
    const std::vector<DType> dtypes{boolean, int8, uint8, int16, uint16, int32, uint32, int64, uint64};
    for (const std::string device : {"cpu", "emulator", "reference"})
        for (const DType left : dtypes) {
            std::vector<Input> inputs;
            std::vector<Expr> outputs;
            std::vector<Array> arguments;
            std::vector<Integers64> expected;
            for (const DType right : {left, boolean, uint8, int8, int32, uint64}) {
                const bool mixed = counts_up(left) != counts_up(right) && left != boolean && right != boolean;
                if (mixed && (left == uint64 || right == uint64)) continue;
                for (const ProductLengths& l :
                     std::vector<ProductLengths>{{3, 5, 4}, {17, 33, 20}, {2, 0, 3}}) {
                    const Expr a = input(left, {-1, -1}, "a"), b = input(right, {-1, -1}, "b");
                    inputs.insert(inputs.end(), {a, b});
                    outputs.push_back(dot(a, b));
                    const Integers64 x = whole_range(left, l.m * l.k, random),
                                     y = whole_range(right, l.k * l.n, random);
                    arguments.push_back(array_of(x, {l.m, l.k}, left));
                    arguments.push_back(array_of(y, {l.k, l.n}, right));
                    expected.push_back(products(x, y, 1, l.m, l.k, l.n));
                    CHECK(outputs.back().dtype() == (counts_up(left) && counts_up(right) ? uint64 : int64));
                }
            }
            const Results got = function(inputs, outputs, FunctionOptions{.device = device}).call(arguments);
            for (std::size_t i = 0; i < expected.size(); ++i) {
                INFO(device << ", " << name_of(left) << ", product " << i);
                CHECK(numbers_of(got[i]) == expected[i]);
            }
        }
}

TEST_CASE("long sums of products of bytes are exact where no sum of floats could be") {
    Random random(12);
    for (const std::int64_t k : {513, 514, 515, 784, 1029, 2100})
        for (const bool extreme : {false, true}) {
            const Expr x = input(uint8, Dims{40, k}, "x"), w = input(int8, Dims{k, 48}, "w");
            Integers64 a = whole_range(uint8, 40 * k, random), b = whole_range(int8, k * 48, random);
            if (extreme) a.assign(a.size(), 255), b.assign(b.size(), -128);
            a.back() = 1;
            Function f = function({x, w}, dot(x, w));
            const Array got = f(array_of(a, {40, k}, uint8), array_of(b, {k, 48}, int8))[0];
            INFO("k = " << k << (extreme ? ", extremes" : ""));
            REQUIRE(numbers_of(got) == products(a, b, 1, 40, k, 48));
        }
}

TEST_CASE("products of integers of other ranks") {
    Random random(5);
    const Integers64 x = whole_range(int32, 2 * 3 * 7, random), y = whole_range(int32, 2 * 7 * 5, random);
    const Expr a = input(int32, {2, 3, 7}, "a"), b = input(int32, {2, 7, 5}, "b");
    const Results got =
        function({a, b}, {matmul(a, b), batched_dot(a, b), batched_dot(a[{colon, 1}], b), dot(a, b[1]),
                          dot(a[{0, 1}], b[0]), dot(a[{0, 1}], b[{0, colon, 2}]), dot(a[1], b)})(
            Array(x, {2, 3, 7}).as(int32), Array(y, {2, 7, 5}).as(int32));
    const Integers64 all = products(x, y, 2, 3, 7, 5);
    CHECK(numbers_of(got[0]) == all);
    CHECK(numbers_of(got[1]) == all);
    CHECK(numbers_of(got[2]) == numbers_of(eval(Expr(Array(all, {2, 3, 5}))[{colon, 1}])));
    const Integers64 second(y.begin() + 35, y.end());
    CHECK(numbers_of(got[3]) == products(x, second, 1, 6, 7, 5));
    CHECK(numbers_of(got[4]) == Integers64(all.begin() + 5, all.begin() + 10));
    CHECK(got[5].item<std::int64_t>() == all[5 + 2]);
    CHECK(got[6].shape() == Dims{3, 2, 5});
    const Integers64 rows(x.begin() + 21, x.end()), first(y.begin(), y.begin() + 35);
    CHECK(numbers_of(eval(Expr(got[6])[{colon, 0}])) == products(rows, first, 1, 3, 7, 5));
}

namespace {

// Elements as double, row-major.
std::vector<double> wide(const Integers64& x) { return {x.begin(), x.end()}; }

Integers64 turned(const Integers64& x, std::int64_t rows, std::int64_t columns) {
    Integers64 r;
    for (std::int64_t j = 0; j < columns; ++j)
        for (std::int64_t i = 0; i < rows; ++i) r.push_back(x[static_cast<std::size_t>(i * columns + j)]);
    return r;
}

}  // namespace

// Also of many rows, whose pieces are made where they are multiplied.
TEST_CASE("products of bytes are exact in every form, in integers and in floats") {
    constexpr std::int64_t k = 300, n = 50;
    Random random(23);
    for (const DType left : {int8, uint8})
        for (const std::int64_t m : {70, 1500}) {
            const Integers64 x = whole_range(left, m * k, random), w = whole_range(int8, k * n, random),
                             xt = turned(x, m, k), wt = turned(w, k, n);
            const Expr a = input(left, {-1, k}, "a"), at = input(left, {k, -1}, "at"),
                       b = input(int8, {k, n}, "b"), bt = input(int8, {n, k}, "bt"),
                       numbers = input(int64, {-1}, "numbers");
            const Expr rows = flip(flip(a, 0)[{Slice{0, m}}], 0);
            const auto f = [](const Expr& e) { return cast(e, float32); };
            const std::vector<Expr> outputs{dot(a, b),
                                            dot(transpose(at), b),
                                            dot(a, transpose(bt)),
                                            dot(transpose(at), transpose(bt)),
                                            dot(rows, b),
                                            dot(gather(a, numbers), transpose(bt)),
                                            dot(f(a), f(b)),
                                            dot(transpose(f(at)), f(b)),
                                            dot(f(a), transpose(f(bt))),
                                            dot(f(rows), f(b)),
                                            cast(dot(a, b), float32)};
            const Results got = function({a, at, b, bt, numbers}, outputs, {.device = tested_device()})(
                array_of(x, {m, k}, left), array_of(xt, {k, m}, left), array_of(w, {k, n}, int8),
                array_of(wt, {n, k}, int8), eval(range(0, m)));
            const Integers64 expected = products(x, w, 1, m, k, n);
            for (std::size_t i = 0; i < got.size(); ++i) {
                INFO(name_of(left) << ", " << m << " rows, form " << i);
                CHECK(difference(got[i], Array(wide(expected), {m, n}).as(got[i].dtype())) == "");
            }
        }
}

TEST_CASE("scales of quantised factors") {
    constexpr std::int64_t m = 40, k = 600, n = 33;
    Random random(24);
    const Integers64 x = whole_range(uint8, m * k, random), w = whole_range(int8, k * n, random),
                     sums = products(x, w, 1, m, k, n);
    const Expr a = input(uint8, {m, k}, "a"), b = input(int8, {k, n}, "b"), bt = input(int8, {n, k}, "bt"),
               of_rows = input(float32, Dims{m}, "of_rows"),
               of_columns = input(float32, Dims{n}, "of_columns"), table = input(float32, {7, n}, "table");
    const Expr pixels = cast(a, float32) / 255, weights = cast(b, float32) * of_columns;
    const std::vector<Expr> outputs{dot(pixels, weights),
                                    dot(pixels, transpose(cast(bt, float32) * expand_dims(of_columns, 1))),
                                    dot(expand_dims(of_rows, 1) * cast(a, float32), weights / 2.0F),
                                    relu(dot(pixels, cast(b, float32))) * of_columns,
                                    // Scales along the sum stay where they are.
                                    dot(cast(a, float32) * mean(pixels, {0}), weights),
                                    dot(pixels, cast(b, float32) * gather(table, range(0, k) % 7))};
    const Array r = random_array(float32, {m}, random), c = random_array(float32, {n}, random),
                t = random_array(float32, {7, n}, random);
    const std::vector<float> by_term = t.to_vector<float>();
    const Results got =
        function({a, b, bt, of_rows, of_columns, table}, outputs, {.device = tested_device()})(
            array_of(x, {m, k}, uint8), array_of(w, {k, n}, int8), array_of(turned(w, k, n), {n, k}, int8), r,
            c, t);
    const std::vector<float> rows = r.to_vector<float>(), columns = c.to_vector<float>();
    std::vector<double> means(static_cast<std::size_t>(k));
    for (std::size_t i = 0; i < x.size(); ++i) means[i % means.size()] += static_cast<double>(x[i]) / 255 / m;
    std::vector<std::vector<double>> expected(outputs.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
        const double sum = static_cast<double>(sums[i]), scale = columns[i % n];
        expected[0].push_back(sum / 255 * scale);
        expected[1].push_back(sum / 255 * scale);
        expected[2].push_back(sum * rows[i / n] * scale / 2);
        expected[3].push_back(std::max(0.0, sum / 255) * scale);
        double weighted = 0, looked_up = 0;
        for (std::size_t p = 0; p < means.size(); ++p) {
            looked_up += static_cast<double>(x[i / n * k + p]) / 255 * static_cast<double>(w[p * n + i % n]) *
                         by_term[p % 7 * n + i % n];
            weighted +=
                static_cast<double>(x[i / n * k + p]) * means[p] * static_cast<double>(w[p * n + i % n]);
        }
        expected[4].push_back(weighted * scale);
        expected[5].push_back(looked_up);
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
        INFO("form " << i);
        CHECK(difference(got[i], Array(expected[i], {m, n}).as(float32), {.of_largest = 1e-6}) == "");
    }
}

// Zero points are added to bytes before they are multiplied; sums that wrap around stay what they are.
TEST_CASE("zero points of quantised factors") {
    constexpr std::int64_t m = 40, k = 300, n = 33;
    Random random(26);
    const Expr a = input(uint8, {m, k}, "a"), b = input(int8, {k, n}, "b"), bt = input(int8, {n, k}, "bt");
    const auto i = [](const Expr& x) { return cast(x, int32); };
    const auto f = [](const Expr& x) { return cast(x, float32); };
    const std::vector<Expr> outputs{dot(i(a) - 33, i(b)),
                                    dot(i(a), i(b) + 5),
                                    dot(i(a) - 33, i(b) - 7),
                                    dot(i(a) - 33, transpose(i(bt) + 1)),
                                    sum(expand_dims(i(a) - 33, 2) * expand_dims(i(b), 0), 1),
                                    sum(expand_dims(i(a), 2) * expand_dims(i(b) - 7, 0), 1),
                                    dot(bt, transpose(a)),
                                    dot(i(bt) - 3, transpose(i(a) - 128)),
                                    dot(f(a) - 33, f(b)),
                                    dot(f(a), transpose(f(bt) - 2)),
                                    dot(f(bt), transpose(f(a) - 128)),
                                    dot((f(a) - 128) * 0.5F, f(b)),
                                    dot(cast(a, int16) + cast(Expr(32700), int16), b),
                                    dot(cast(a, uint16) + cast(Expr(65500), uint16), b),
                                    dot(f(a) - 0.5F, f(b))};
    const std::vector<Array> arguments{array_of(whole_range(uint8, m * k, random), {m, k}, uint8),
                                       array_of(whole_range(int8, k * n, random), {k, n}, int8),
                                       array_of(whole_range(int8, n * k, random), {n, k}, int8)};
    const Results got = function({a, b, bt}, outputs, {.device = tested_device()}).call(arguments),
                  expected = function({a, b, bt}, outputs, {.device = "reference"}).call(arguments);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
        INFO("form " << o);
        CHECK(difference(got[o], expected[o]) == "");
    }
}

TEST_CASE("factors that are no longer the bytes that they were") {
    constexpr std::int64_t m = 40, k = 64, n = 48;
    Random random(27);
    const Expr a = input(uint8, {m, k}, "a"), b = input(int8, {k, n}, "b"), c = input(int8, {m, k}, "c"),
               narrow = input(int8, {m, k - 4}, "narrow"), h = input(int16, {m, k}, "h");
    const auto f = [](const Expr& x) { return cast(x, float32); };
    const std::vector<std::pair<int, int>> columns{{0, 0}, {2, 2}}, rows{{1, 1}, {0, 0}};
    const std::vector<Expr> outputs{
        dot(cast(a, boolean), b),
        dot(a, cast(b, boolean)),
        dot(f(cast(a, boolean)), f(cast(b, boolean))),
        sum(expand_dims(cast(cast(a, boolean), int32), 2) * expand_dims(cast(b, int32), 0), 1),
        dot(cast(c, uint32), b),
        dot(cast(cast(c, uint32), float64), cast(b, float64)),
        dot(cast(cast(cast(c, int32), uint32), int64) + 200, b),
        dot(cast(cast(h, float16), int32), b),
        dot(cast(cast(h, bfloat16), int32), b),
        dot(pad(cast(narrow, int32) + 5, columns), b),
        dot(pad(f(narrow) - 5, columns), f(b)),
        dot(pad(f(c), rows, 0.5), f(b)),
        dot(pad(f(a), rows, -1), f(b)),
        dot(pad(cast(a, int32), rows, 300), b),
        dot(pad(cast(narrow, int32), columns, 1000), b),
        dot(pad(narrow, columns), b),
        sum(cast(cast(expand_dims(h, 2), int8), int32) * expand_dims(cast(b, int32), 0), 1),
        sum(cast(expand_dims(cast(h, int8), 2), int32) *
                expand_dims(cast(cast(cast(b, int16) * 9, int8), int32), 0),
            1)};
    const std::vector<Array> arguments{array_of(whole_range(uint8, m * k, random), {m, k}, uint8),
                                       array_of(whole_range(int8, k * n, random), {k, n}, int8),
                                       array_of(whole_range(int8, m * k, random), {m, k}, int8),
                                       array_of(whole_range(int8, m * (k - 4), random), {m, k - 4}, int8),
                                       array_of(whole_range(int16, m * k, random), {m, k}, int16)};
    const Results got = function({a, b, c, narrow, h}, outputs, {.device = tested_device()}).call(arguments),
                  expected = function({a, b, c, narrow, h}, outputs, {.device = "reference"}).call(arguments);
    for (std::size_t o = 0; o < outputs.size(); ++o) {
        INFO("form " << o);
        const Tolerance rounded{.of_largest = 1e-6};
        CHECK(difference(got[o], expected[o], is_float(got[o].dtype()) ? rounded : Tolerance{}) == "");
    }
}

// Results of a layer are requantised to int8 where they are made, and read so by the next; a variable adds
// up.
TEST_CASE("layers of bytes, and sums of bytes in a variable") {
    constexpr std::int64_t m = 65, k = 784, h = 128, n = 96;
    Random random(25);
    const Integers64 x = whole_range(uint8, m * k, random), w1 = whole_range(int8, k * h, random),
                     w2 = whole_range(int8, h * n, random);
    const Expr a = input(uint8, {-1, k}, "a"), first = input(int8, {k, h}, "first"),
               second = input(int8, {h, n}, "second");
    const Shared total = shared(zeros({h, h}).as(int32), "total");
    const Expr hidden = cast(clip(round(cast(dot(a, first), float32) / 8192), -127, 127), int8);
    Function f = function({a, first, second}, dot(hidden, second),
                          {.updates = {{total, total + cast(dot(transpose(hidden), hidden), int32)}},
                           .device = tested_device()});
    Integers64 between;
    for (const std::int64_t sum : products(x, w1, 1, m, k, h))
        between.push_back(static_cast<std::int64_t>(
            std::clamp(std::nearbyint(static_cast<float>(sum) / 8192), -127.0F, 127.0F)));
    const Integers64 expected = products(between, w2, 1, m, h, n),
                     squares = products(turned(between, m, h), between, 1, h, m, h);
    for (int step = 1; step <= 2; ++step) {
        const Array got =
            f(array_of(x, {m, k}, uint8), array_of(w1, {k, h}, int8), array_of(w2, {h, n}, int8))[0];
        CHECK(numbers_of(got) == expected);
        Integers64 added = squares;
        for (std::int64_t& sum : added) sum *= step;
        CHECK(numbers_of(total.get_value().as(int64)) == added);
    }
}

// Conditions are 0 or 1: float32 holds the sums of many more bytes.
TEST_CASE("products of bytes with conditions and one-hot rows") {
    constexpr std::int64_t rows = 3001, columns = 40, classes = 7;
    Random random(26);
    const Integers64 x = whole_range(uint8, rows * columns, random);
    Integers64 labels, hot(rows * classes, 0);
    for (std::int64_t k = 0; k < rows; ++k) {
        labels.push_back(random.between(-1, classes));
        if (labels.back() >= 0 && labels.back() < classes) hot[k * classes + labels.back()] = 1;
    }
    const Expr a = input(uint8, Dims{rows, columns}, "a"), k = input(int32, Dims{rows}, "k"),
               m = input(boolean, Dims{rows, classes}, "m");
    std::vector<Expr> sums;
    for (const DType dtype : {boolean, uint8, int8, uint16, int32})
        sums.push_back(dot(transpose(one_hot(k, classes, dtype)), dtype == int32 ? cast(a, int32) : a));
    sums.push_back(dot(transpose(m), a));
    sums.push_back(transpose(dot(transpose(a), cast(m, uint8))));
    Function f = function({a, k, m}, sums, {.device = tested_device(), .on_unused_input = OnUnused::ignore});
    const Integers64 expected = products(turned(hot, rows, classes), x, 1, classes, rows, columns);
    const Results got = f(array_of(x, {rows, columns}, uint8), array_of(labels, {rows}, int32),
                          array_of(hot, {rows, classes}, boolean));
    for (std::size_t i = 0; i < sums.size(); ++i) {
        INFO(i);
        CHECK(numbers_of(got[i].as(int64)) == expected);
    }
}

TEST_CASE("lengths of products of integers are compared") {
    const Expr a = input(int32, {-1, -1}, "a"), b = input(int32, {-1, -1}, "b");
    Function f = function({a, b}, dot(a, b));
    CHECK_THROWS_AS(f(zeros({2, 3}).as(int32), zeros({4, 2}).as(int32)), ShapeError);
    CHECK_THROWS_AS(f(zeros({2, 1}).as(int32), zeros({4, 2}).as(int32)), ShapeError);
    CHECK_THROWS_AS(f(zeros({2, 3}).as(int32), zeros({1, 2}).as(int32)), ShapeError);
    CHECK_THROWS_AS(dot(input(int8, Dims{2, 1}, "x"), input(int8, Dims{4, 2}, "y")), ShapeError);
    CHECK_THROWS_AS(dot(input(uint64, Dims{2, 1}, "x"), input(int8, Dims{1, 2}, "y")), TypeError);
}
