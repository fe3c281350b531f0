// Loops that g++ before version 14 compiles to wrong code.
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

// Whether an iteration stores several elements of a place and makes several steps through what it reads
// under a guard: stores and reads become groups of vectors, and such a g++ gives all masked loads of a group
// the mask of the first one.
bool has_masked_group(const Stmt& loop, const std::vector<Place>& places);

}  // namespace bitale
