// Which updates may be written straight into their shared variable.
#pragma once

#include <vector>

#include "codegen/group/group.h"
#include "codegen/kernel/ir.h"
#include "codegen/target.h"

namespace bitale {

struct UpdatePlan {
    std::vector<bool> in_place;  // per graph.updates
};

// In place only if every other reader of the old value is done in an earlier level, or reads the very element
// that is being replaced, in the value's own body; and if no check can fail after it.
UpdatePlan plan_updates(const Graph& graph, const Values& values, const Grouping& grouping);

// The tasks that copy a new value from one place to the other, its variable's.
Segment copy_of_new_value(const SharedUpdate& update, int from, int to, const Target& target);

}  // namespace bitale
