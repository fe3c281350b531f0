// Values that are put together from parts of others, as concatenations and gradients of slices are.
#pragma once

#include "codegen/group/values.h"

namespace bitale {

// Whether each element of the value asks which of several parts has it, and a product reads the value whole
// for each of its rows. Every task of rows would put it together again; from memory it is read as it is. Not
// what is larger than a cache, nor narrower in memory than it is here.
bool is_joined_for_products(const Values& values, int number);

}  // namespace bitale
