// Large sums of products on a GPU, matrix products and convolutions alike: a block computes a tile of
// results, a thread some of them in registers, from pieces of both factors in shared memory.
#pragma once

#include <string>
#include <vector>

#include "codegen/nest/tree.h"
#include "codegen/schedule/segment.h"

namespace bitale::gpu {

// A product in tiles, or one of which some phase of the results is: nest/phases.h.
bool is_tiled(const Nest& nest, const ReductionTree& tree);

// Of a value whose nest is, alone in its group: a kind of tasks for each phase of its results.
std::vector<Segment> schedule_tiles(int value, const SegmentContext& context, KernelBuilder& builder,
                                    const std::string& title, std::string& notes);

}  // namespace bitale::gpu
