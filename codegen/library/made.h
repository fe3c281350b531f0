// Operands of a library's product that are nowhere in memory as a whole: a kernel makes the piece of them
// that a slice needs next, in the cache of the core that multiplies it.
#pragma once

#include <vector>

#include "codegen/group/values.h"

namespace bitale {

// Once storage is decided.
bool is_made(const Value& operand);

// The values in memory that the call which computes a value reads: operands, or what their pieces are made
// of.
std::vector<int> read_by_call(const Values& values, int value);

// Factor `side` of the product that a call computes, over its own axes: [m, k] or [k, n].
Nest made_operand(const Values& values, int value, int side);

}  // namespace bitale
