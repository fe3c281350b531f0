// Work: what a node costs to compute, roughly, and whether a rewrite computes again what stays in use.
#pragma once

#include <functional>

#include "graph/rewrite/pattern.h"

namespace bitale {

// Rough cycles for the whole value, after the cost column of the elementwise table. A length that only a call
// tells counts as 64. Views cost nothing, since they are fused; composites cost what they decompose into.
double work_of(const NodePtr& node);

// How many elements a reduction loads for each of its points: what is the same for several results is loaded
// once for as many of them as have their places in registers. A product of large matrices loads a quarter of
// one. Maps and views are looked through, as they are computed where they are read.
double loads_per_point(const NodePtr& reduction);

// Whether `made`, the replacement of a match of `pattern`, is more work than what it makes superfluous,
// because matched nodes have other users and stay. Matches without such users never repeat work; parts that
// the pattern marks with again() are left out. `exists` tells the nodes that are there anyway.
bool repeats_work(const Pattern& pattern, const Match& match, const NodePtr& made,
                  const std::unordered_map<const Node*, int>& users,
                  const std::function<bool(const Node&)>& exists);

}  // namespace bitale
