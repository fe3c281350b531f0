// What a block of threads computes of a group: candidates, of which the launch model takes the fastest.
#pragma once

#include <cstdint>
#include <functional>

#include "codegen/schedule/rows_of_task.h"
#include "codegen/schedule/segment.h"

namespace bitale::gpu {

// Of the candidates the one with the least predicted time, in microseconds: one row, twice as many each time
// up to those that occupy a block's threads in the smallest product of the group, or in its widest member
// where there is none; one row in parts of a second axis that all members walk in step, of at least a warp.
// On a GPU of which nothing is known the most rows.
TaskPlan fastest_plan(const Group& group, const SegmentContext& context,
                      const std::function<double(const TaskPlan&)>& predicted);

// Shared memory that pieces of the group's products need in turns (schedule/gpu_product.h).
std::int64_t bytes_of_pieces(const Group& group, const SegmentContext& context, std::int64_t rows);

}  // namespace bitale::gpu
