// How many rows of its group's first axis a task computes.
#pragma once

#include <cstdint>

#include "codegen/schedule/segment.h"

namespace bitale {

constexpr std::int64_t pointwise_block = 2048;  // elements of a task that only maps

// On a CPU one row, or several: those of a tile of a product, those that meet as vectors, those that lanes
// run along, or so many that a map has 2,048 elements. On a GPU as many as occupy the threads of a block;
// with products, those of the smallest product, whose sums take longest.
std::int64_t rows_of_task(const Group& group, const SegmentContext& context);

}  // namespace bitale
