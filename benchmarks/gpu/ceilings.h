// What the GPU can do at most, and what a launch costs: what times of steps are held against.
#pragma once

#include "gpu/machine.h"
#include "gpu/record.h"

namespace bench {

// Bytes read and written each second by a copy, for sizes below and above the L2 cache. `reduced`: few and
// small, so that the emulator ends.
Json measure_copy(Machine& machine, bool reduced);
// Floating-point operations of fused multiply-adds each second.
Json measure_fma(Machine& machine, bool reduced);
// A launch of an empty kernel among many, by events and by the host's clock; and one that is waited for.
Json measure_launch(Machine& machine, bool reduced);
// One more node in a chain of empty kernels, and one more turn of a WHILE node: slopes.
Json measure_graph_node(Machine& machine, bool reduced);
Json measure_while_turn(Machine& machine, bool reduced);

}  // namespace bench
