// Floats with fewer bits, as tensor cores take them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace bitale::emulated {

constexpr int all_mantissa_bits = 23, tf32_mantissa_bits = 10, bf16_mantissa_bits = 7;

// To the nearest float with that many bits of mantissa, ties to even; NaN and infinities stay.
inline float rounded(float value, int mantissa_bits) {
    if (mantissa_bits >= all_mantissa_bits || !std::isfinite(value)) return value;
    const int dropped = all_mantissa_bits - mantissa_bits;
    auto bits = std::bit_cast<std::uint32_t>(value);
    bits += (std::uint32_t{1} << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
    return std::bit_cast<float>(bits >> dropped << dropped);
}

}  // namespace bitale::emulated
