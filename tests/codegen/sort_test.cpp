// The helpers of orders and of sums over runs: positions in order, and where keys begin.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "tests/codegen/device_functions.h"
#include "tests/support/catch.h"

using namespace bitale::device;

namespace {

template <bool down, class X>
void check_order(const std::vector<X>& row, std::size_t wanted) {
    const std::size_t count = row.size();
    const auto is_nan = [](X x) { return x != x; };
    std::vector<i64> expected(count), order(wanted + 1, -1);
    std::iota(expected.begin(), expected.end(), i64{0});
    std::stable_sort(expected.begin(), expected.end(), [&](i64 i, i64 j) {
        const X a = row[static_cast<std::size_t>(down ? j : i)],
                b = row[static_cast<std::size_t>(down ? i : j)];
        return !is_nan(a) && (is_nan(b) || a < b);
    });
    expected.resize(wanted);
    expected.push_back(-1);
    // No word beyond the room is written.
    const std::size_t words = (sizeof(X) > 4 ? 4 : 2) * count;
    std::vector<u64> room(words + 2, 77);
    auto* aligned = reinterpret_cast<u64*>((reinterpret_cast<std::uintptr_t>(room.data()) + 15) / 16 * 16);
    b_sort_row<down>(order.data(), row.data(), aligned, static_cast<i64>(count), static_cast<i64>(wanted));
    CHECK(order == expected);
    CHECK(aligned[words] == 77);
}

template <class X>
void check_orders(const std::vector<X>& row) {
    for (const std::size_t part : {std::size_t{1}, std::size_t{17}, std::size_t{50}}) {
        check_order<false>(row, row.size() / part);
        check_order<true>(row, row.size() / part);
    }
}

constexpr std::size_t lengths[] = {0,  1,  2,  3,  4,  5,   7,   8,    9,    31,   32,   33,
                                   63, 64, 65, 96, 97, 192, 193, 1000, 8191, 8192, 20000};

}  // namespace

TEST_CASE("integers are put in order, equal ones as they come") {
    std::mt19937_64 random(1);
    for (const std::size_t count : lengths)
        for (const std::uint64_t most : {std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{1} << 20,
                                         std::uint64_t{1} << 33, ~std::uint64_t{0}}) {
            INFO(count << " keys below " << most);
            std::vector<u64> keys(count);
            for (u64& key : keys) key = random() % most;
            check_orders(keys);
            check_orders(std::vector<i64>(keys.begin(), keys.end()));
            check_orders(std::vector<u32>(keys.begin(), keys.end()));
            check_orders(std::vector<i32>(keys.begin(), keys.end()));
            check_orders(std::vector<i16>(keys.begin(), keys.end()));
            check_orders(std::vector<u8>(keys.begin(), keys.end()));
        }
}

TEST_CASE("floats are put in order, NaN last, zeros of both signs as they come") {
    std::mt19937_64 random(3);
    const std::vector<double> special = {0.0,           -0.0,     1,         -1,    std::nan(""),
                                         -std::nan(""), HUGE_VAL, -HUGE_VAL, 1e-310};
    for (const std::size_t count : lengths)
        for (const int one_in : {1, 2, 1000}) {
            std::vector<double> row(count);
            for (double& x : row)
                x = random() % static_cast<unsigned>(one_in) == 0
                        ? special[random() % special.size()]
                        : std::ldexp(static_cast<double>(random() % 2000) - 1000,
                                     static_cast<int>(random() % 60) - 30);
            check_orders(row);
            check_orders(std::vector<float>(row.begin(), row.end()));
        }
}

TEST_CASE("the first of a row that comes in order or from its end") {
    std::vector<float> row(5000);
    std::iota(row.begin(), row.end(), -2500.0F);
    check_orders(row);
    std::reverse(row.begin(), row.end());
    check_orders(row);
    std::fill(row.begin(), row.end(), std::nanf(""));
    check_orders(row);
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
