// Windows: values that are read by the windows of a convolution, of which tasks keep copies.
#pragma once

#include "codegen/group/values.h"
#include "codegen/target.h"

namespace bitale {

// Whether windows of sums of products are faster on a copy of the value with its border, though it takes no
// operation to compute where it is read: vectors are loaded from a copy. Elements that are looked up, in rows
// that lie anywhere, come one by one otherwise. Where the border is around axes that memory does not have, as
// around images that are rows of a matrix, each product asks whether it is in the border.
bool is_copied_for_windows(const Values& values, int number, bool is_looked_up, const Target& target);

// Whether sums over windows read the value with a border, in a copy that has it: then that of what the value
// is computed from would cost as much.
bool is_copied_with_border(const Values& values, int number, const Target& target);

}  // namespace bitale
