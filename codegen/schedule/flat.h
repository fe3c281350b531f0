// Maps over one long axis on a CPU: a task has a block of its elements, of all values one after another.
#pragma once

#include <string>

#include "codegen/schedule/segment.h"

namespace bitale {

// Of a group that collapses().
Segment schedule_flat(const Group& group, const SegmentContext& context, KernelBuilder& builder,
                      const std::string& title, std::string& notes);

}  // namespace bitale
