// Array: numbers come out as cast would convert them, and sizes are counted before anything is allocated.
#include "bitale/array.h"

#include <cmath>
#include <limits>

#include "tests/support/catch.h"

using namespace bitale;

TEST_CASE("an element is converted once, by the rule of cast") {
    constexpr auto most = std::numeric_limits<std::uint64_t>::max();
    constexpr std::int64_t odd = (std::int64_t{1} << 53) + 1;
    CHECK(Array(most).item<std::uint64_t>() == most);
    CHECK(Array(odd).item<std::int64_t>() == odd);
    CHECK(Array(std::vector<std::int64_t>{1, odd}).at<std::int64_t>(1) == odd);
    CHECK(Array(std::vector<std::uint64_t>{most, 1}).at<std::uint64_t>(0) == most);
    CHECK(Array(most).item<std::int64_t>() == -1);  // integers wrap
    CHECK(Array(300).item<std::uint8_t>() == 44);
    CHECK(Array(1e30).item<std::int32_t>() == std::numeric_limits<std::int32_t>::max());
    CHECK(Array(std::nan("")).item<std::int64_t>() == 0);
    CHECK(Array(0.25).item<bool>());
    CHECK(Array(0.1).item<float>() == 0.1F);
    CHECK(Array(2.5L).dtype() == float64);
    CHECK(Array(2.5L).item<double>() == 2.5);
    CHECK(Array(2.5).item<long double>() == 2.5L);
    CHECK(Array(std::vector<float>{1.5F, 2.5F}).at(1) == 2.5);
    CHECK(Array(true).at<int>(0) == 1);
    CHECK_THROWS_AS(Array(1).at<int>(1), IndexError);
    CHECK_THROWS_AS(Array(1).at(-1), IndexError);
    CHECK_THROWS_AS(Array(std::vector<int>{1, 2}).item<int>(), ShapeError);
}

TEST_CASE("shapes whose elements, bytes or strides cannot be counted are refused") {
    constexpr auto most = std::numeric_limits<std::int64_t>::max();
    CHECK_THROWS_AS(count_of({most, 2}), ShapeError);
    CHECK_THROWS_AS(count_of({0, most, most}), ShapeError);
    CHECK_THROWS_AS(count_of({most, most, 0}), ShapeError);
    CHECK(count_of({0, most}) == 0);
    CHECK_THROWS_WITH(Array(float64, {std::int64_t{1} << 61}),
                      ContainsSubstring("more bytes than can be counted"));
    CHECK_THROWS_AS(Array(uint8, {most}), ShapeError);
    CHECK_THROWS_AS(Array(uint8, {-1}), ShapeError);
}
