// Loops over the same points, one after another, as one loop: what several of them read comes from memory
// once, and divisions and roots of one go on while another waits for memory. The updates of an optimizer are
// such loops.
#pragma once

#include "codegen/kernel/ir.h"

namespace bitale {

// For a CPU: of loops in vector lanes that meet at some place, and only there where each has the same element
// in the same iteration. Operations and their results stay the same.
void fuse_loops(KernelIR& kernel);

}  // namespace bitale
