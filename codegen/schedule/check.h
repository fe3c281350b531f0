// Checks of values at run time: of indices, say. What is wrong sets the error word.
#pragma once

#include <functional>

#include "codegen/schedule/copies.h"
#include "codegen/schedule/segment.h"

namespace bitale {

// How many rows of the checked value a task has.
std::int64_t rows_of_check(const Group& group, const SegmentContext& context);

// The group's check. `with_places`: reads of values become reads of places.
Segment schedule_check(const Group& group, const TaskRows& rows, const SegmentContext& context,
                       KernelBuilder& builder, const std::function<Nest(const Nest&)>& with_places);

}  // namespace bitale
