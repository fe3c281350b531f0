// Sums that share what takes long to compute, as those of a weighted mean do: one loop adds up all of them,
// and what they share is computed once for all and never stored.
#pragma once

#include <vector>

#include "codegen/group/values.h"

namespace bitale {

// The reductions of rows that alone read the value, each of them all of its elements, by way of maps of its
// shape: two or a few more, in ascending order, if one loop can compute them. Empty: there are none such.
std::vector<int> summed_together(const Values& values, int value);

}  // namespace bitale
