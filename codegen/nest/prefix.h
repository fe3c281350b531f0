// Prefixes: each result combines the elements before its own place along an axis.
#pragma once

#include <cstddef>

#include "graph/ir/nest.h"

namespace bitale {

// The last loop over results is the place: the nest visits the points of its one reduced loop that come
// before, and its body is otherwise the same for all places. A schedule that walks the axis once combines in
// the same order.
bool is_prefix(const Nest& nest);

}  // namespace bitale
