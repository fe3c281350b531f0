// Array: numbers come out as cast would convert them, and sizes are counted before anything is allocated.
#include "bitale/array.h"

#include <cmath>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

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
    CHECK_THROWS_WITH(Array(uint8, {-1}), ContainsSubstring("; write the length: arrays have no -1"));
    CHECK_THROWS_WITH(Array(uint8, {-2}), Catch::Matchers::EndsWith("the shape [-2]"));
    CHECK_THROWS_WITH(double(Array(float32, {3})),
                      ContainsSubstring("an array of shape [3]: use mean(...) in the function, or .at(k)"));
}

TEST_CASE("an array that was moved from is an error wherever it is used, and takes a new value") {
    Array x(std::vector<float>{1, 2, 3});
    Array y = std::move(x);
    CHECK(y.size() == 3);
    // NOLINTBEGIN(bugprone-use-after-move)
    const std::vector<std::function<void()>> uses = {
        [&] { (void)x.dtype(); },
        [&] { (void)x.shape(); },
        [&] { (void)x.rank(); },
        [&] { (void)x.size(); },
        [&] { (void)x.bytes(); },
        [&] { (void)x.data(); },
        [&] { x.mutable_data(); },
        [&] { (void)x.at(0); },
        [&] { (void)x.at<int>(2); },
        [&] { (void)x.item<float>(); },
        [&] { (void)static_cast<double>(x); },
        [&] { (void)x.to_vector<float>(); },
        [&] { (void)x.view<float>(); },
        [&] { (void)x.as(float32); },
        [&] { (void)x.as(int8); },
        [&] { (void)x.reshaped({3}); },
        [&] { (void)x.rows(0, 0); },
        [&] { (void)x.text(); },
        [&] { (void)same(x, y); },
        [&] { (void)same(y, x); },
        [&] { const Array copy = x; },
        [&] { y = x; },
    };
    for (std::size_t i = 0; i < uses.size(); ++i) {
        INFO("use " << i);
        CHECK_THROWS_WITH(uses[i](), ContainsSubstring("moved from"));
        CHECK_THROWS_AS(uses[i](), GraphError);
    }
    x = y;
    CHECK(x.to_vector<int>() == std::vector<int>{1, 2, 3});
    Array& itself = x;
    x = std::move(itself);
    CHECK(x.to_vector<int>() == std::vector<int>{1, 2, 3});
    x = std::move(y);
    CHECK(x.at(2) == 3);
    y = Array(4);
    CHECK(y.item<int>() == 4);
    // NOLINTEND(bugprone-use-after-move)
}

TEST_CASE("memory that is not there cannot be adopted") {
    CHECK_THROWS_WITH(Array::adopt(float32, {2, 3}, nullptr),
                      ContainsSubstring("float32 [2, 3]") && ContainsSubstring("null"));
    CHECK_THROWS_AS(Array::adopt(int8, {}, std::shared_ptr<void>()), Error);
    CHECK_THROWS_AS(Array::adopt(float64, {std::int64_t{1} << 61}, nullptr), ShapeError);
    const Array none = Array::adopt(float32, {0, 3}, nullptr);
    CHECK(none.size() == 0);
    CHECK(none.data() != nullptr);
    CHECK(same(none, Array(float32, {0, 3})));
}
