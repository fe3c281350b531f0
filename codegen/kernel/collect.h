// Loops over one or a few registers of lanes whose operands lie apart in memory, as every other column does:
// a compiler that would need a register more than there is to load them computes each lane by itself. Where
// that is much work, as exp is, the elements are collected first.
// Longer loops whose operands are looked up collect them block by block. Places that are computed from floats
// are collected likewise.
//
//     for each lane:  collected[lane] = x[2 * lane]
//     for each lane:  parts[lane] += exp(collected[lane])
#pragma once

#include "codegen/kernel/ir.h"

namespace bitale {

// For a CPU.
void collect_lanes(KernelIR& kernel);

}  // namespace bitale
