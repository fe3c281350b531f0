// How many rows of its group's first axis a task computes: by the work of the group, and so that many cores
// have tasks, however many there are.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/schedule/cut.h"
#include "codegen/schedule/segment.h"
#include "codegen/schedule/staging.h"

namespace bitale {

constexpr std::int64_t pointwise_block = 2048;  // elements of a task that only maps

// Of a CPU. `row`: the loop over the first axis, in a member's nest.
TaskPlan plan_tasks(const Group& group, const SegmentContext& context, const RowOf& row);
// Of a task that computes a map and nothing else.
std::int64_t rows_of_map(const Nest& map, const ShapeOf& shape_of);

}  // namespace bitale
