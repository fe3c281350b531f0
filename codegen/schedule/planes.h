// Pooling over planes whose rows lie in memory, on a CPU: maxima of windows, their positions, and the
// gradient that goes back to them. A row is sorted by column modulo the stride, rows likewise; then results
// that are neighbours read neighbours, whatever the stride, and run in vector lanes along all of a plane, row
// after row. What comes out of several phases is put together again on its way to memory.
#pragma once

#include <optional>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// The best value of windows over the last two axes, or its position; `also`: the other of the two, over the
// same loops, or null. Nothing where windows are others, or rows do not lie in memory.
std::optional<Stmts> schedule_window_planes(const Member& member, const Member* also, KernelBuilder& builder);

// Values, and short sums of values, that are each read from the windows in which their place is.
std::optional<Stmts> schedule_placed_planes(const Member& member, KernelBuilder& builder);

}  // namespace bitale
