// How many bytes an array takes, before there is one.
#pragma once

#include <cstdint>
#include <limits>

#include "bitale/array.h"

namespace bitale {

// Room for what allocators add.
constexpr std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max() - std::int64_t{4096};

// Kernels may read a register behind the elements.
constexpr std::int64_t bytes_behind_array = 64;

// That the block of an array takes, in whole lines of memory.
constexpr std::int64_t block_of_array(std::int64_t bytes) {
    return (bytes + bytes_behind_array + 63) / 64 * 64;
}

// ShapeError for a negative length, and where there are more than can be counted.
std::int64_t bytes_of(DType dtype, const Dims& shape);

}  // namespace bitale
