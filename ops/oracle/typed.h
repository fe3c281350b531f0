// The typed oracle: evaluates a graph as it is written, node by node, with each op's plain loops. A
// floating-point node is computed in double from operands that are rounded to their dtypes, and its result is
// rounded to its own; integers are exact, and wrap or saturate as documented. No rewriting rule is applied.
#pragma once

#include "ops/oracle/leaves.h"

namespace bitale {

// Values of the roots, in their declared dtypes. `leaves` holds the values of input nodes; shared variables
// have their current values. Throws IndexError where a check fails.
std::vector<Array> evaluate(const Nodes& roots, const LeafValues& leaves);

}  // namespace bitale
