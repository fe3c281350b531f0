// Levels of a plan: groups of one level share a launch, and a level begins when the one before it has ended.
// Levels are as late as users allow, so that all parameter updates meet in the last one.
//
// A new value that changes a large part of a variable takes the old one's place wherever an order allows it:
// after all checks and all readers of the old value, before the readers of the new one. Rows of a large table
// take theirs behind the updates of other variables that read the old rows.
#pragma once

#include <set>
#include <vector>

#include "codegen/group/group.h"

namespace bitale {

// A value that is saved in fewer bytes as soon as it can be: what it is made of may then go. So it is in no
// kernel with what reads it.
inline bool is_saved(const Value& value) { return value.node->op->is_stored; }

// Sets the level of each group, which of them commit, and how many levels there are. `behind`: of
// behind_waits(); `parts`: new values of variables that differ from the old ones in a large part alone.
void set_levels(const Values& values, const Graph& graph, const std::vector<bool>& behind,
                const std::set<int>& parts, Grouping& grouping);

}  // namespace bitale
