// Hashes of what consists of parts.
#pragma once

#include <bit>
#include <cstdint>

namespace bitale {

inline std::uint64_t mix(std::uint64_t seed, std::uint64_t x) {
    x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15u;
    x ^= x >> 29;
    return (std::rotl(seed, 23) ^ x) * 0xbf58476d1ce4e5b9u;
}

}  // namespace bitale
