// What a gradient computes again (ops/autodiff/again.h): when it runs.
//
// Values that are computed from again(x, after) are those of the forward pass once more. They share no kernel
// with these, they wait for `after`, and the backward pass, as soon as it can, uses them up.
#pragma once

#include <set>
#include <vector>

#include "codegen/group/group.h"
#include "graph/ir/graph.h"

namespace bitale {

// Puts x in place of again(x, after); for each node that reads it, what it waits for.
Waits take_off_again(Graph& graph);

// Per value: whether it is computed from something that waits; empty where nothing does.
std::vector<bool> behind_waits(const Values& values);

// The groups that a stored value has to wait for, beside those that it reads; their values come before it.
std::set<int> groups_before(const Values& values, const Grouping& grouping, int value);

// Whether the group runs as early, and not as late, as it can: what the backward pass reads is free then.
bool runs_early(const Values& values, const Group& group, const std::vector<bool>& behind);

}  // namespace bitale
