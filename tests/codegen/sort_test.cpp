// The helpers of sums over runs: stable order, and where keys begin.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/catch.h"

namespace bitale::device {
// clang-format off
#include "codegen/device/base.h"
#include "codegen/device/sort.h"
// clang-format on
}  // namespace bitale::device

using namespace bitale::device;

namespace {

template <class T>
void check_order(std::vector<T> keys) {
    const std::size_t count = keys.size();
    std::vector<T> order(count, -1), expected(count);
    std::iota(expected.begin(), expected.end(), T(0));
    std::stable_sort(expected.begin(), expected.end(), [&](T a, T b) {
        return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    });
    std::vector<T> room = keys;
    room.resize(3 * count + 1);
    b_sort(order.data(), room.data(), static_cast<i64>(count));
    CHECK(order == expected);
}

}  // namespace

TEST_CASE("keys are put in order, equal ones as they come") {
    std::mt19937_64 random(1);
    for (const std::size_t count : {0, 1, 2, 3, 100, 4095, 4096, 20000})
        for (const std::int64_t most :
             {std::int64_t{0}, std::int64_t{1}, std::int64_t{9}, std::int64_t{300}, std::int64_t{1} << 20,
              std::int64_t{INT32_MAX}, std::int64_t{1} << 40}) {
            INFO(count << " keys up to " << most);
            std::vector<i64> keys(count);
            for (i64& key : keys) key = std::uniform_int_distribution<i64>(0, most)(random);
            check_order(keys);
            if (most <= INT32_MAX) check_order(std::vector<i32>(keys.begin(), keys.end()));
        }
}

TEST_CASE("where keys begin that are not below a number") {
    std::mt19937_64 random(2);
    for (const i64 count : {0, 1, 2, 7, 64, 1000}) {
        std::vector<i32> keys(static_cast<std::size_t>(count));
        for (i32& key : keys) key = std::uniform_int_distribution<i32>(0, 50)(random);
        std::sort(keys.begin(), keys.end());
        for (i64 begin = 0; begin <= count; begin += 1 + count / 9)
            for (i64 end = begin; end <= count; end += 1 + count / 9)
                for (i64 low = -1; low <= 52; ++low) {
                    const auto expected =
                        std::lower_bound(keys.begin() + begin, keys.begin() + end, static_cast<i32>(low)) -
                        keys.begin();
                    CHECK(b_search(keys.data(), begin, end, low) == expected);
                }
    }
    const i32 none = 0;
    CHECK(b_search(&none, 5, 3, 0) == 5);
}
