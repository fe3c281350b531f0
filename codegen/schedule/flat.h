// Maps over one long axis on a CPU: a task has a block of its elements, of all values one after another.
#pragma once

#include <string>

#include "codegen/schedule/segment.h"

namespace bitale {

// Of a group that collapses().
Segment schedule_flat(const Group& group, const SegmentContext& context, KernelBuilder& builder,
                      const std::string& title, std::string& notes);

// The value is larger than what caches hold until another kernel reads it.
bool leaves_caches(const Group& group, const SegmentContext& context, int value);

}  // namespace bitale
