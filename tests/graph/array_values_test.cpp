// Host arrays that one can work with: braces, slices, text.
#include <limits>
#include <sstream>

#include "bitale/array.h"
#include "tests/support/catch.h"

using namespace bitale;

namespace {

// 0, 1, 2 ... of a shape.
Array counted(const Dims& shape) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < count_of(shape); ++i) values.push_back(i);
    return Array(values, shape);
}

std::string printed(const Array& a) {
    std::ostringstream out;
    out << a;
    return out.str();
}

}  // namespace

TEST_CASE("braces make arrays of one, two and three axes, of the numbers' type") {
    const Array v = {1.5F, 2.5F, 3.5F};
    CHECK(same(v, Array(std::vector<float>{1.5F, 2.5F, 3.5F})));
    const Array m = {{1, 2, 3}, {4, 5, 6}};
    CHECK(same(m, Array(std::vector<int>{1, 2, 3, 4, 5, 6}, {2, 3})));
    const Array t = {{{1.0, 2.0}}, {{3.0, 4.0}}};
    CHECK(same(t, Array(std::vector<double>{1, 2, 3, 4}, {2, 1, 2})));
    const Array flags = {true, false};
    CHECK(flags.dtype() == boolean);
    CHECK(flags.shape() == Dims{2});
    const Array halves = {{Float16(0.5F)}};
    CHECK(halves.dtype() == float16);
    CHECK(halves.shape() == Dims{1, 1});
    CHECK(Array{7}.shape() == Dims{1});  // in braces a vector, in parentheses a number
    CHECK(Array(7).shape().empty());
    CHECK_THROWS_AS((Array{{1, 2}, {3}}), ShapeError);
    CHECK_THROWS_WITH((Array{{1, 2}, {3}}), ContainsSubstring("row 1") && ContainsSubstring("has 1 number"));
    CHECK_THROWS_AS((Array{{{1, 2}}, {{3, 4}, {5, 6}}}), ShapeError);
}

TEST_CASE("a part of an array is a row, a plane or a number") {
    const Array a = counted({2, 3, 2});
    CHECK(same(a[1], Array(std::vector<std::int64_t>{6, 7, 8, 9, 10, 11}, {3, 2})));
    CHECK(same(a[-1][0], Array(std::vector<std::int64_t>{6, 7})));
    CHECK(a[1][2][1].item<int>() == 11);
    CHECK(counted({2, 0})[1].shape() == Dims{0});
    CHECK_THROWS_AS(a[2], IndexError);
    CHECK_THROWS_AS(a[-3], IndexError);
    CHECK_THROWS_AS(Array(1)[0], IndexError);
    CHECK_THROWS_WITH(a[2], "index 2 is out of range for axis 0 of an array of shape [2, 3, 2]");
    CHECK_THROWS_WITH(Array(1)[0], ContainsSubstring("a number has no axes"));
    CHECK_THROWS_WITH(a.rows(1, 5), "rows [1, 5) are out of range: the array has rows [0, 2)");
    CHECK_THROWS_WITH(a.at(12), "element 12 is out of range: the array has 12 elements");
    CHECK_THROWS_WITH(a.slice(3, 0), "slice: there is no axis 3 in an array of shape [2, 3, 2]");
    CHECK_THROWS_AS(counted({0})[0], IndexError);
}

TEST_CASE("slices are NumPy's: clipped, from the end, with steps") {
    const Array a = counted({3, 5});
    CHECK(same(a.slice(0, 1, 3), a.rows(1, 3)));
    CHECK(same(a.slice(1, 1, 4, 2), Array(std::vector<std::int64_t>{1, 3, 6, 8, 11, 13}, {3, 2})));
    CHECK(same(a.slice(-1, -2), Array(std::vector<std::int64_t>{3, 4, 8, 9, 13, 14}, {3, 2})));
    CHECK(
        same(a.slice(1, -1, {}, -2), Array(std::vector<std::int64_t>{4, 2, 0, 9, 7, 5, 14, 12, 10}, {3, 3})));
    CHECK(same(a.slice(0, 0, 99), a));
    CHECK(a.slice(0, 7, 99).shape() == Dims{0, 5});
    CHECK(a.slice(1, 3, 1).shape() == Dims{3, 0});
    CHECK_THROWS_AS(a.slice(2, 0), IndexError);
    CHECK_THROWS_AS(a.slice(-3, 0), IndexError);
    CHECK_THROWS_AS(a.slice(0, 0, 1, 0), IndexError);
    CHECK_THROWS_AS(Array(1).slice(0, 0), IndexError);
    // Against the definition: what range(first, last, step) visits, as Python clips it.
    constexpr auto most = std::numeric_limits<std::int64_t>::max(),
                   least = std::numeric_limits<std::int64_t>::min();
    const Array line = counted({4});
    for (const std::int64_t first :
         {least, std::int64_t{-5}, std::int64_t{-4}, std::int64_t{-1}, std::int64_t{0}, std::int64_t{3},
          std::int64_t{4}, std::int64_t{9}, most})
        for (const std::int64_t last : {least, std::int64_t{-5}, std::int64_t{-1}, std::int64_t{0},
                                        std::int64_t{2}, std::int64_t{4}, most})
            for (const std::int64_t step : {least, std::int64_t{-3}, std::int64_t{-1}, std::int64_t{1},
                                            std::int64_t{2}, std::int64_t{9}, most}) {
                const auto clip = [&](std::int64_t i) {
                    const std::int64_t low = step < 0 ? -1 : 0, high = step < 0 ? 3 : 4;
                    if (i < 0) i = i < -4 ? low : i + 4;
                    return i > high ? high : i < low ? low : i;
                };
                std::vector<std::int64_t> expected;
                const std::int64_t end = clip(last);
                for (std::int64_t i = clip(first); step > 0 ? i < end : i > end; i += step) {
                    expected.push_back(i);
                    if (step > 9 || step < -9) break;  // one step leads out of the axis
                }
                INFO(first << ':' << last << ':' << step);
                CHECK(line.slice(0, first, last, step).to_vector<std::int64_t>() == expected);
            }
}

TEST_CASE("arrays are printed as NumPy prints them") {
    CHECK(printed({{1.F, 2.5F}, {-3.F, 4.F}}) == "[[ 1.   2.5]\n [-3.   4. ]]");
    CHECK(printed({1, 20, -300}) == "[   1   20 -300]");
    CHECK(printed({true, false}) == "[ True False]");
    CHECK(printed(Array(2.5)) == "2.5");
    CHECK(printed(Array(3)) == "3");
    CHECK(printed(Array(5.0)) == "5.0");
    CHECK(printed({0.1F, 0.2F}) == "[0.1 0.2]");
    CHECK(printed({1.0 / 3, 2.0}) == "[0.33333333 2.        ]");
    CHECK(printed({1e-5, 1.0}) == "[1.e-05 1.e+00]");
    CHECK(printed({1.25e10, 1.0}) == "[1.25e+10 1.00e+00]");
    CHECK(printed({1e-300, 1.0}) == "[1.e-300 1.e+000]");
    CHECK(printed({1.0F, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) ==
          "[  1.  nan -inf]");
    CHECK(printed(Array(float32, {0, 3})) == "[]");
    CHECK(printed(Array(std::vector<std::uint8_t>{7, 255})) == "[  7 255]");
    CHECK(printed(Array(std::vector<std::uint64_t>{std::numeric_limits<std::uint64_t>::max()})) ==
          "[18446744073709551615]");
    CHECK(printed({Float16(0.1F), Float16(2.F)}) == "[0.1 2. ]");
    CHECK(printed(counted({2, 1, 2})) == "[[[0 1]]\n\n [[2 3]]]");
    CHECK(printed(counted({1001})) == "[   0    1    2 ...  998  999 1000]");
    CHECK(printed(counted({1000, 8})) ==
          "[[   0    1    2 ...    5    6    7]\n [   8    9   10 ...   13   14   15]\n"
          " [  16   17   18 ...   21   22   23]\n ...\n [7976 7977 7978 ... 7981 7982 7983]\n"
          " [7984 7985 7986 ... 7989 7990 7991]\n [7992 7993 7994 ... 7997 7998 7999]]");
    // Lines of 75 columns at most.
    CHECK(printed(counted({30})) ==
          "[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n"
          " 24 25 26 27 28 29]");
    CHECK(to_text(counted({7}), {.all = 6, .edge = 1}) == "[0 ... 6]");
    CHECK(to_text({1.0 / 3}, {.digits = 3}) == "[0.333]");
}
