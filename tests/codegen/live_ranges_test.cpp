// Live ranges of a task's values and copies, and the buffers that they share.
#include "codegen/schedule/live_ranges.h"

#include <vector>

#include "tests/support/catch.h"

using namespace bitale;

TEST_CASE("live ranges in one buffer have one type and do not overlap") {
    const Type small{DType::float32, {8, 4}}, large{DType::float32, {8, 5}}, other{DType::int32, {8, 4}};
    const std::vector<LiveRange> ranges{
        {0, false, 1, 3, small},   // a slot
        {1, false, 3, 5, small},   // while the first is still read: another one
        {2, false, 5, 7, small},   // after the first, while the second is read
        {3, false, 5, 9, large},   // of another shape
        {4, false, 9, 11, other},  // of another dtype
        {5, true, 9, 9, small},    // copies are among themselves
        {6, true, 10, 12, small}, {7, false, 8, 8, small},
    };
    const std::vector<std::size_t> slot = shared_buffers(ranges);
    REQUIRE(slot.size() == ranges.size());
    CHECK(slot[0] != slot[1]);
    CHECK(slot[2] == slot[0]);
    CHECK(slot[3] != slot[0]);
    CHECK(slot[4] != slot[0]);
    CHECK(slot[4] != slot[3]);
    CHECK(slot[5] != slot[0]);
    CHECK(slot[6] == slot[5]);
    CHECK((slot[7] == slot[0] || slot[7] == slot[1]));
    // Whatever the order in which they are given.
    std::vector<LiveRange> reversed(ranges.rbegin(), ranges.rend());
    const std::vector<std::size_t> again = shared_buffers(reversed);
    for (std::size_t a = 0; a < ranges.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) {
            if (again[a] != again[b]) continue;
            CHECK((reversed[a].last < reversed[b].first || reversed[b].last < reversed[a].first));
            CHECK(reversed[a].type == reversed[b].type);
        }
}

TEST_CASE("no values need no buffers") { CHECK(shared_buffers({}).empty()); }
