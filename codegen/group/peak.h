// The order of groups for which the least lives at once.
#pragma once

#include <array>

#include "codegen/group/group.h"

namespace bitale {

// Moves groups to earlier levels where that lowers the most that lives at one level by some per cent, for a
// small batch or for a large one, and raises it for neither: a gradient of parameters then follows the values
// that it alone still reads. Groups whose move lowers nothing stay where they share a launch. What writes a
// variable comes after everything that reads the old value, and after all checks. Returns the most bytes that
// live at one level then, in a small batch and in a large one; 0 where there is no choice.
std::array<double, 2> order_for_peak(const Values& values, const Graph& graph, Grouping& grouping);

}  // namespace bitale
