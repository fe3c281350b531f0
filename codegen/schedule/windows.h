// Maxima over short windows on a CPU, as pooling takes them: results in vector lanes, every point of a window
// written out.
#pragma once

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// A largest or smallest element, or its position, among few points that are known.
bool takes_windows(const Nest& nest);
// `vector` is the parallel loop that runs in lanes.
Stmts schedule_windows(const Member& member, KernelBuilder& builder, int vector);

// Short sums over elements that neighbouring lanes share, as the gradient of pooling has where windows
// overlap: written out, they are maps. `vector` is the loop in lanes.
bool is_overlapped(const Nest& nest, int vector);
Stmts schedule_overlapped(const Member& member, KernelBuilder& builder);

}  // namespace bitale
