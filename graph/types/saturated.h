// Arithmetic of lengths that cannot be: what leaves 64 bits is the last number of its side. Wrapped, an
// absurd argument could pass for a small length; so it stays beyond whatever can be counted, and is refused.
// Lengths that the host computes from numbers (IntTable), and lengths that are numbers when an expression is
// built, or on device `reference` (Int), are computed here, so that all say the same of the same arguments.
#pragma once

#include <cstdint>
#include <limits>

namespace bitale::saturated {

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(),
                       most = std::numeric_limits<std::int64_t>::max();

constexpr std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    return !__builtin_add_overflow(a, b, &r) ? r : a < 0 ? least : most;
}

constexpr std::int64_t difference(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    return !__builtin_sub_overflow(a, b, &r) ? r : a < 0 ? least : most;
}

constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    return !__builtin_mul_overflow(a, b, &r) ? r : (a < 0) != (b < 0) ? least : most;
}

// Toward minus infinity; 0 where b is 0, as for integers of every dtype.
constexpr std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
    if (b == 0) return 0;
    if (b == -1) return a == least ? most : -a;
    return a / b - static_cast<std::int64_t>(a % b != 0 && (a < 0) != (b < 0));
}

}  // namespace bitale::saturated
