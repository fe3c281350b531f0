// The kernel that a library's product runs on each of its slices: maps of the result while it is in the
// cache.
#pragma once

#include <cstddef>
#include <string>

#include "codegen/schedule/segment.h"

namespace bitale {

// The group's first value is the product, those from number `first` on are the maps to run. Tasks are the
// slices of the call. Where nothing else needs the product, it is read from `slice`, a program buffer that
// holds one slice of it.
Segment schedule_epilogue(const Group& group, std::size_t first, const GemmCall& call, int slice,
                          const SegmentContext& context, KernelBuilder& builder, std::string& notes);

}  // namespace bitale
