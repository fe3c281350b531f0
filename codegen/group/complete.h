// Values that end a reduction, as the bias and the relu behind a product do: stored in its place, they are
// what others read, and the reduction itself needs no memory.
#pragma once

#include "codegen/group/values.h"

namespace bitale {

// Of a reduction of the same size that a kernel computes, by way of values that nothing else reads.
bool ends_reduction(const Value& value, const Values& values);

// Likewise, of a value that reads two other arrays of the same size or more: a residual stream, whose readers
// would otherwise read what all layers before them have added.
bool joins_reduction(const Value& value, const Values& values);

}  // namespace bitale
