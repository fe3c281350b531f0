// Loops that g++ before version 14 compiles to wrong code, or not at all.
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

// Whether an iteration stores several elements of a place and makes several steps through what it reads
// under a guard: stores and reads become groups of vectors, and such a g++ gives all masked loads of a group
// the mask of the first one. Or whether it takes the larger or smaller of elements of 16 bits under guards:
// of that and a load g++ makes a masked instruction of AVX-512 that it then does not know.
bool has_masked_group(const Stmt& loop, const std::vector<Place>& places);

}  // namespace bitale
