// Opaque ops: what a routine of the runtime computes as a whole, from memory to memory.
#pragma once

#include "codegen/library/call.h"
#include "codegen/target.h"
#include "graph/ir/node.h"

namespace bitale {

// The call of an opaque node, with the memory that the routine needs meanwhile; `operands` are value numbers.
LibraryCall routine_call(const Node& node, const Target& target, std::vector<int> operands);

}  // namespace bitale
