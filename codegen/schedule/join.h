// Loops over results of a task that walk every place as one axis.
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"
#include "codegen/schedule/member.h"

namespace bitale {

// One loop for neighbours that are one axis in memory, and none for those of one iteration.
void join_results(Member& member, const std::vector<Place>& places);

}  // namespace bitale
