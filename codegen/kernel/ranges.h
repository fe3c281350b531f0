// Ranges of loop variables, which simplification takes for granted: an index whose quotient is 0 in the range
// is not divided. verify() proves them for few loops; this pass lets a kernel check them while it runs.
#pragma once

#include "codegen/kernel/ir.h"

namespace bitale {

// Every task, loop and dynamic index begins with a trap for a variable outside its range; loops that are
// vector registers or transposed tiles as a whole have constant bounds, and stay as they are. For a CPU.
void check_ranges(KernelIR& kernel);

}  // namespace bitale
