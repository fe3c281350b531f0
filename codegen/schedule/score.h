// What a group would take by itself: what fusing is decided by.
#pragma once

#include <optional>

#include "codegen/schedule/rows_of_task.h"
#include "codegen/schedule/segment.h"

namespace bitale {

// Predicted microseconds of the group, which is scheduled for that in a kernel of its own: on a GPU, whose
// facts have to be known, of its launches (schedule/launch_model.h), with the fastest plan of its tasks
// unless there is a given one; on a CPU, of one core (kernel/work.h). Of the context it needs all but the
// buffers. Infinite where the plan has a cut and no proof that a task stays in its part.
double predicted_time(const Group& group, const SegmentContext& context, bool short_text,
                      std::optional<TaskPlan> plan = {});

}  // namespace bitale
