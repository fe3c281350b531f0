// Runs a nest in long double, some thousands of points at a time.
#pragma once

#include <vector>

#include "graph/ir/nest.h"
#include "ops/oracle/wide.h"

namespace bitale {

// The nest's lengths are numbers.
WidePtr run_wide(const Nest& nest, const std::vector<WidePtr>& operands);

}  // namespace bitale
