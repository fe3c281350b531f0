// Sums of small integers are exact, whatever dtype they are asked in, and whole runs of bytes are added at
// once.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "bitale/bitale.h"
#include "tests/support/catch.h"
#include "tests/support/numerics.h"
#include "tests/support/packed_cases.h"
#include "tests/support/tested_device.h"

using namespace bitale;        // NOLINT
using namespace bitale::test;  // NOLINT

namespace {

// Numbers that use the whole range of the dtype.
std::vector<int> numbers(DType dtype, std::size_t count) {
    std::vector<int> list(count);
    unsigned state = 7;
    for (int& x : list) {
        state = state * 1664525u + 1013904223u;
        x = static_cast<int>((state >> 9) % 256u);
        if (dtype == int8) x -= 128;
        if (dtype == boolean) x &= 1;
        if (dtype == int16) x = (x - 128) * 256;
    }
    return list;
}

}  // namespace

TEST_CASE("sums of bytes are exact for every length of a run") {
    for (const DType dtype : {uint8, int8, boolean, int16}) {
        const Expr x = matrix("x", dtype), single = cast(x, float32);
        Function sums =
            function({x}, {sum(single), sum(single, {1}), sum(x), mean(single), sum(cast(x, float64), {0})});
        for (const std::int64_t n : {1, 5, 15, 16, 17, 31, 32, 63, 64, 65, 200, 784, 8192, 8193, 20000})
            for (const std::int64_t rows : {1, 3}) {
                const std::vector<int> list = numbers(dtype, static_cast<std::size_t>(n * rows));
                double all = 0;
                std::vector<double> of_row(rows, 0), of_column(n, 0);
                for (std::size_t i = 0; i < list.size(); ++i) {
                    all += list[i];
                    of_row[i / n] += list[i];
                    of_column[i % n] += list[i];
                }
                const Results got = sums(Array(list, {rows, n}).as(dtype));
                INFO(text_of(Dims{rows, n}) << " " << name_of(dtype));
                CHECK(got[0].at(0) == static_cast<float>(all));
                for (std::int64_t i = 0; i < rows; ++i) CHECK(got[1].at(i) == static_cast<float>(of_row[i]));
                CHECK(got[2].at(0) == all);
                CHECK(got[3].at(0) == Approx(all / static_cast<double>(n * rows)));
                CHECK(got[4].to_vector<double>() == of_column);
            }
    }
}

TEST_CASE("the mean of gathered images, rows that begin anywhere, and none at all") {
    constexpr std::int64_t images = 40, height = 5, width = 7;
    const std::vector<int> list = numbers(uint8, images * height * width);
    const Shared data = shared(Array(list, {images, height, width}).as(uint8), "data");
    const Expr chosen = lvector("chosen");
    Function f =
        function({chosen}, {mean(cast(data[chosen], float32)), sum(cast(data[chosen], float32), {1, 2})});
    for (const std::vector<std::int64_t>& rows :
         {std::vector<std::int64_t>{3}, {39, 0, 17, 17, 5}, std::vector<std::int64_t>(300, 11), {}}) {
        double all = 0;
        std::vector<float> each;
        for (const std::int64_t r : rows) {
            double one = 0;
            for (std::int64_t i = 0; i < height * width; ++i) one += list[r * height * width + i];
            each.push_back(static_cast<float>(one));
            all += one;
        }
        const Results got = f(Array(rows));
        CHECK(got[1].to_vector<float>() == each);
        if (rows.empty())
            CHECK(std::isnan(got[0].at(0)));
        else
            CHECK(got[0].at(0) == Approx(all / static_cast<double>(rows.size() * height * width)));
    }
}

TEST_CASE("rows from a place found at run time are one run, gathered ones are added row by row") {
    constexpr std::int64_t images = 130, height = 28, width = 30;
    for (const DType dtype : {uint8, int8, boolean}) {
        const std::vector<int> list = numbers(dtype, images * height * width);
        const Shared data = shared(Array(list, {images, height, width}).as(dtype), "data"),
                     order = shared(permutation(images, 3), "order");
        const Array shuffled = order.get_value();
        const Expr i = lscalar("i"), chosen = order[Slice{i, i + 40}];
        Function f = function({i}, {mean(cast(rows(data, i % 30, 100), float32)), sum(rows(data, i % 30, 70)),
                                    mean(cast(data[chosen], float32)), sum(data[chosen], {1, 2})});
        for (const std::int64_t first : {0, 1, 29, 89, 110}) {
            const auto of = [&](std::int64_t row) {
                double one = 0;
                for (std::int64_t k = 0; k < height * width; ++k) one += list[row * height * width + k];
                return one;
            };
            double all = 0, some = 0, gathered = 0;
            for (std::int64_t k = 0; k < 100; ++k) all += of(first % 30 + k);
            for (std::int64_t k = 0; k < 70; ++k) some += of(first % 30 + k);
            const std::int64_t count = std::min<std::int64_t>(40, images - first);
            const Results got = f(first);
            for (std::int64_t k = 0; k < count; ++k) {
                const double one = of(static_cast<std::int64_t>(shuffled.at(first + k)));
                CHECK(got[3].at(k) == one);
                gathered += one;
            }
            INFO(name_of(dtype) << " from " << first);
            CHECK(got[0].at(0) == Approx(all / (100.0 * height * width)));
            CHECK(got[1].at(0) == some);
            CHECK(got[2].at(0) == Approx(gathered / static_cast<double>(count * height * width)));
        }
    }
}

TEST_CASE("a sum of bytes beyond 31 bits") {
    const std::int64_t n = 9'000'001;
    const Expr x = vector("x", uint8);
    Function f = function({x}, {sum(cast(x, float64)), sum(cast(x, float32))});
    std::vector<std::uint8_t> list(n, 255);
    const Results got = f(Array(list));
    CHECK(got[0].at(0) == 255.0 * static_cast<double>(n));
    CHECK(got[1].at(0) == static_cast<float>(255.0 * static_cast<double>(n)));
}

TEST_CASE("few rows times matrices of bytes") {
    constexpr std::int64_t depth = 300;
    for (const std::int64_t rows : {1, 2, 3, 5, 8, 13, 14, 15}) {
        const std::vector<int> left = numbers(int8, static_cast<std::size_t>(rows * depth));
        const Shared x = shared(Array(left, {rows, depth}).as(int8).as(float32), "x");
        std::vector<Expr> all;
        std::vector<Array> expected;
        for (const std::int64_t columns : {1, 15, 16, 64, 100, 129, 640})
            for (const DType dtype : {uint8, int8, boolean}) {
                const std::vector<int> right = numbers(dtype, static_cast<std::size_t>(depth * columns));
                const Shared across = shared(Array(right, {depth, columns}).as(dtype), "across"),
                             along = shared(Array(right, {columns, depth}).as(dtype), "along"),
                             scale = shared(ones({columns}) * 0.5, "scale");
                std::vector<double> by_columns, by_rows;
                for (std::int64_t i = 0; i < rows; ++i)
                    for (std::int64_t j = 0; j < columns; ++j) {
                        double one = 0, other = 0;
                        for (std::int64_t k = 0; k < depth; ++k) {
                            one += left[i * depth + k] * right[k * columns + j];
                            other += left[i * depth + k] * right[j * depth + k];
                        }
                        by_columns.push_back(one / 2);
                        by_rows.push_back(other / 2);
                    }
                all.push_back(dot(x, cast(across, float32)) * scale);
                all.push_back(dot(x, transpose(cast(along, float32))) * scale);
                all.push_back(dot(x[0], cast(across, float32)) * scale);
                for (const std::vector<double>* list : {&by_columns, &by_rows})
                    expected.push_back(Array(*list, {rows, columns}).as(float32));
                by_columns.resize(static_cast<std::size_t>(columns));
                expected.push_back(Array(by_columns).as(float32));
            }
        const Results got = function({}, all)();
        for (std::size_t i = 0; i < all.size(); ++i) {
            INFO(rows << " rows, number " << i << ", " << text_of(got[i].shape()));
            CHECK(difference(got[i], expected[i]).empty());
        }
    }
}

TEST_CASE("sums of bytes, a part of which is set after they are widened") {
    Random random(41);
    const Expr i = lscalar("i");
    for (const DType dtype : {uint8, int8, boolean})
        for (const DType wide : {int16, int64, float32}) {
            INFO(name_of(dtype) << " as " << name_of(wide));
            const Expr b = input(dtype, {7, 5}, "b"), w = cast(b, wide), set = cast(Expr(300), wide);
            const std::vector<Expr> all{sum(set_subtensor(w, {Slice{0, 2}}, set), 1),
                                        sum(inc_subtensor(w, {Slice{0, 2}}, set), 0),
                                        mean(set_subtensor(w, {i}, set), 1), sum(inc_subtensor(w, {i}, set))};
            const Array bytes = random_array(dtype, {7, 5}, random, -100, 200);
            const std::vector<Array> arguments{bytes, Array(std::int64_t{3})};
            const Results got = function({b, i}, all, {.device = tested_device()}).call(arguments),
                          expected = function({b, i}, all, {.device = "reference"}).call(arguments);
            for (std::size_t k = 0; k < all.size(); ++k) {
                INFO("number " << k);
                CHECK(difference(got[k], expected[k], {.of_largest = 1e-6}) == "");
            }
        }
}

TEST_CASE("sums of bytes that were cast to another sign") {
    PackedCases cases(tested_device());
    Random random(4);
    for (const auto& [from, to] : {std::pair{uint8, int8}, std::pair{int8, uint8}, std::pair{int8, uint16},
                                   std::pair{int8, uint32}, std::pair{int8, uint64}, std::pair{uint8, int16}})
        for (const Dims& shape : {Dims{23, 100}, Dims{100, 20}, Dims{70, 3}}) {
            const Expr x = input(from, 2, "x"), y = cast(x, to);
            const std::vector<Array> values{
                random_array(from, shape, random, from == int8 ? -128 : 0, from == int8 ? 127 : 255)};
            const std::string of =
                fmt::format("{} as {} {}", name_of(from), name_of(to), text_of(Dims(shape)));
            cases.add(of, {x}, values, sum(y));
            cases.add(of + ", rows", {x}, values, sum(y, {1}));
            cases.add(of + ", columns", {x}, values, sum(y, {0}));
            cases.add(of + ", mean", {x}, values, mean(cast(y, float32) / 8 - 0.5F, {0}));
        }
    cases.run(60);
}
