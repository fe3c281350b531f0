// Maps over one long axis on a GPU: each thread has some neighbouring elements, which it loads and stores by
// 16 bytes and keeps in registers in between.
#pragma once

#include "codegen/schedule/segment.h"

namespace bitale::gpu {

// Of a group that collapses().
Segment schedule_pointwise_group(const Group& group, const SegmentContext& context, KernelBuilder& builder,
                                 const std::string& title, std::string& notes);

}  // namespace bitale::gpu
