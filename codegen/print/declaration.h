// How a kernel declares what it works in.
#pragma once

#include <string>

#include "codegen/kernel/ir.h"
#include "codegen/kernel/shared_memory.h"

namespace bitale {

// A place that is one variable, not an array.
bool is_variable(const Place& place);

// The line for the place of that number; empty where a segment does not use it.
std::string declaration_of(const Place& place, int number, bool cuda, const SharedMemory& shared);

}  // namespace bitale
