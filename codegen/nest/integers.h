// Which integers a dtype has.
#pragma once

#include <cstdint>
#include <limits>

#include "graph/ir/nest.h"
#include "graph/types/index.h"

namespace bitale {

// All of them that int64 has too.
constexpr IntRange range_of(DType dtype) {
    switch (dtype) {
        case DType::boolean: return {0, 1};
        case DType::int8:
            return {std::numeric_limits<std::int8_t>::min(), std::numeric_limits<std::int8_t>::max()};
        case DType::int16:
            return {std::numeric_limits<std::int16_t>::min(), std::numeric_limits<std::int16_t>::max()};
        case DType::int32:
            return {std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()};
        case DType::uint8: return {0, std::numeric_limits<std::uint8_t>::max()};
        case DType::uint16: return {0, std::numeric_limits<std::uint16_t>::max()};
        case DType::uint32: return {0, std::numeric_limits<std::uint32_t>::max()};
        case DType::int64: return {IntRange::lowest, IntRange::highest};
        default: return {0, -1};
    }
}

// A cast to the dtype leaves such integers as they are.
constexpr bool holds(DType dtype, const IntRange& range) {
    const IntRange all = range_of(dtype);
    return all.low <= range.low && range.high <= all.high;
}

// There may be numbers beyond the bounds.
constexpr bool is_saturated(const IntRange& range) {
    return range.low <= IntRange::lowest || range.high >= IntRange::highest;
}

// Inside of casts that change no number: of those that an index takes, or that the dtype has.
const ScalarNode& inside_casts(const Scalar& scalar);

}  // namespace bitale
