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

struct TaskPlan {
    // On a CPU one row, or several: those of a tile of a product, those that meet as vectors, those that
    // lanes run along, or so many that a map has 2,048 elements. Fewer where these would leave cores without
    // a task, but not less than the members need that do most of the work. On a GPU as many as occupy the
    // threads of a block; with products, those of the smallest product, whose sums take longest.
    std::int64_t rows = 1;
    // On a CPU: parts of a second axis, where rows are too few for many cores and nothing much is done twice.
    std::optional<AxisCut> cut;
};
// `row`: the loop over the first axis, in a member's nest.
TaskPlan plan_tasks(const Group& group, const SegmentContext& context, const RowOf& row);

}  // namespace bitale
