// Where groups end early, so that less lives at once.
//
// A group that walks the rows of a batch through all layers of a network, forwards and backwards, is one step
// of the program: what it leaves for others, as each layer's cotangents for the gradient of its filters, all
// lives at the end of it. Where the group ends earlier, these others run, and what they read is free before
// the next layer. Each end costs a launch, and what goes on from there is read from memory.
#pragma once

#include <functional>
#include <set>

#include "codegen/group/peak.h"

namespace bitale {

// Values of a grouping whose groups may end with them: others are ready then that would wait for the rest.
std::set<int> early_ends(const Values& values, const Grouping& grouping);

// The grouping without early ends; or with as few of them as lower the peak about as much as all do, where
// that is a fifth of it, some megabytes, and one for each.
Grouping ended_early(const Values& values, const Graph& graph,
                     const std::function<Grouping(const std::set<int>& ends)>& grouped);

}  // namespace bitale
