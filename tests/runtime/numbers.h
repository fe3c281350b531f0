// Numbers between -1 and 1, the same everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitale::test {

template <class T>
std::vector<T> numbers(std::int64_t count, std::uint32_t seed) {
    std::vector<T> r(static_cast<std::size_t>(count));
    for (T& x : r) {
        seed = seed * 1664525u + 1013904223u;
        x = static_cast<T>(seed >> 8) / static_cast<T>(1 << 23) - 1;
    }
    return r;
}

}  // namespace bitale::test
