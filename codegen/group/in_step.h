// Axes of results that values walk in step: where one of them reads another, it does so at its own point of
// the axis, and none of its results takes others along the axis into account, as prefixes and sorts do.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

// Whether the index is the nest's loop over results of this number.
bool is_axis(const Nest& nest, int d, const Int& index);

using AxesInStep = std::map<int, int>;  // of each value, which of its loops over results

// Beginning with one value's axis, along the reads of the values by each other. `nests`: theirs. Empty where
// not all of them walk it in step, or nothing tells that they do.
AxesInStep axes_in_step(const std::vector<int>& values, const std::vector<Nest>& nests,
                        const std::pair<int, int>& begin);

}  // namespace bitale
