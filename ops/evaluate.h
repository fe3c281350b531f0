// The oracle: evaluates a graph with each op's plain loops, floats in float64 throughout.
#pragma once

#include <unordered_map>

#include "graph/ir/graph.h"

namespace bitale {

// Values of the roots, in their declared dtypes. `leaves` holds the values of input nodes; shared variables
// have their current values. Throws IndexError where a check fails.
std::vector<Array> evaluate(const Nodes& roots, const std::unordered_map<const Node*, Array>& leaves);

}  // namespace bitale
