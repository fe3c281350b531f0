// Transposes on a GPU: tiles of 32 x 32 elements pass through shared memory, so that neighbouring threads
// both read and write neighbouring elements.
#pragma once

#include <optional>
#include <vector>

#include "codegen/schedule/segment.h"

namespace bitale::gpu {

// A map whose large operands lie along another axis of the result than its last one.
struct Transpose {
    int value = 0;
    Nest nest;            // everything inlined
    int axis = 0;         // of the parallel loops, along which those operands lie
    std::vector<Int> at;  // of the result, by the variables of the parallel loops
};
std::optional<Transpose> match_transpose(const Group& group, const Values& values);
Segment schedule_transpose(const Transpose& transpose, const SegmentContext& context, KernelBuilder& builder,
                           const std::string& title, std::string& notes);

}  // namespace bitale::gpu
