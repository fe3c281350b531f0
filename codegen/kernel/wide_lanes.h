// Short loops in vector lanes that read bytes and booleans beside wider elements:
//
//     for 16 lanes: wide[lane] = mask[row, lane]
//     for 16 lanes: sums[lane] += x[row, lane] * wide[lane]
//
// Compilers choose registers by the narrowest elements of a loop: without the first loop g++ 12 takes the
// lanes two at a time.
#pragma once

#include "codegen/kernel/ir.h"

namespace bitale {

void widen_lanes(KernelIR& kernel);

}  // namespace bitale
