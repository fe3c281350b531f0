// Large sums of products on a GPU, matrix products and convolutions alike: a block computes a tile of
// results, a thread some of them in registers, from pieces of both factors in shared memory.
#pragma once

#include "codegen/schedule/segment.h"

namespace bitale::gpu {

// Of a value whose nest is_large_product(), alone in its group.
Segment schedule_tile(int value, const SegmentContext& context, KernelBuilder& builder,
                      const std::string& title, std::string& notes);

}  // namespace bitale::gpu
