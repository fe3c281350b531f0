// The order of groups for which the least lives at once.
#pragma once

#include "codegen/group/group.h"

namespace bitale {

// Moves groups to earlier levels where that lowers the most that lives at one level by some per cent, for a
// small batch or for a large one, and raises it for neither: a gradient of parameters then follows the values
// that it alone still reads. Groups whose move lowers nothing stay where they share a launch. What writes a
// variable comes after everything that reads the old value, and after all checks.
void order_for_peak(const Values& values, const Graph& graph, Grouping& grouping);

}  // namespace bitale
