// Faults behind the doors to the outside, for tests. Compiled in by the build option BITALE_FAULTS, or into a
// test program that compiles the doors itself; else nothing of this exists.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "graph/base/outside.h"

namespace bitale::outside {

// FAULTS=write:3 in the environment is {write, 3}; write:3+ goes on from there, write:3:kill ends the
// process, write:3:wait=20 sleeps 20 ms; any:5 counts the uses of all doors.
struct Fault {
    enum class What : std::uint8_t { fail, wait, kill };
    std::optional<Door> door{};  // none: any
    std::int64_t number = 1;     // which use of the door, from 1
    bool onwards = false;        // that and all later ones
    What what = What::fail;
    int milliseconds = 0;
};
std::optional<Fault> parse_fault(std::string_view text);
const char* name_of(Door door);

// In force until the next one, or none. Counting begins at 1 again.
void plant(const std::optional<Fault>& fault);
// Uses of each door since the last plant(), and how many of them met the fault.
struct Uses {
    std::array<std::int64_t, doors> of{};
    std::int64_t all = 0, met = 0;
    std::optional<Door> last_met{};
};
Uses uses();

// What became of a file, for tests that replay a part of it. `other`: the new name; `bytes`: what was
// written.
struct FileEvent {
    enum class What : std::uint8_t { opened, written, synced, renamed, removed };
    What what = What::opened;
    int file = -1;
    std::string path, other, bytes;
};
void observe(std::function<void(const FileEvent&)> observer);

}  // namespace bitale::outside
