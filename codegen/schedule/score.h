// What a group would take on a GPU by itself: what fusing is decided by.
#pragma once

#include <optional>

#include "codegen/schedule/rows_of_task.h"
#include "codegen/schedule/segment.h"

namespace bitale {

// Predicted microseconds of the launches of the group (schedule/launch_model.h), which is scheduled for that
// in a kernel of its own, with the fastest plan of its tasks unless there is a given one. Of the context it
// needs all but the buffers. The target's facts have to be known. Infinite where the plan has a cut and no
// proof that a task stays in its part.
double predicted_time(const Group& group, const SegmentContext& context, bool short_text,
                      std::optional<TaskPlan> plan = {});

}  // namespace bitale
