// Rooms of memory that a task's values and copies take turns at.
#include "codegen/schedule/rooms.h"

#include <vector>

#include "tests/support/catch.h"

using namespace bitale;

TEST_CASE("one room is for one at a time, of one type") {
    const Type small{DType::float32, {8, 4}}, large{DType::float32, {8, 5}}, other{DType::int32, {8, 4}};
    const std::vector<Stay> stays{
        {0, false, 1, 3, small},   // a room
        {1, false, 3, 5, small},   // while the first is still read: another one
        {2, false, 5, 7, small},   // after the first, while the second is read
        {3, false, 5, 9, large},   // of another shape
        {4, false, 9, 11, other},  // of another dtype
        {5, true, 9, 9, small},    // copies are among themselves
        {6, true, 10, 12, small}, {7, false, 8, 8, small},
    };
    const std::vector<std::size_t> room = rooms_for(stays);
    REQUIRE(room.size() == stays.size());
    CHECK(room[0] != room[1]);
    CHECK(room[2] == room[0]);
    CHECK(room[3] != room[0]);
    CHECK(room[4] != room[0]);
    CHECK(room[4] != room[3]);
    CHECK(room[5] != room[0]);
    CHECK(room[6] == room[5]);
    CHECK((room[7] == room[0] || room[7] == room[1]));
    // Whatever the order in which they are given.
    std::vector<Stay> reversed(stays.rbegin(), stays.rend());
    const std::vector<std::size_t> again = rooms_for(reversed);
    for (std::size_t a = 0; a < stays.size(); ++a)
        for (std::size_t b = 0; b < a; ++b) {
            if (again[a] != again[b]) continue;
            CHECK((reversed[a].last < reversed[b].first || reversed[b].last < reversed[a].first));
            CHECK(reversed[a].type == reversed[b].type);
        }
}

TEST_CASE("no values need no rooms") { CHECK(rooms_for({}).empty()); }
