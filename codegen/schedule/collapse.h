// Groups whose values run as one long axis.
#pragma once

#include "codegen/group/group.h"

namespace bitale {

// A group of maps over one shape whose every access is linear in the joined axes.
bool collapses(const Group& group, const Values& values);
// The nest of a map with its loops replaced by `point`, the position in row-major order.
Nest flattened(const Nest& nest, const Int& point);

}  // namespace bitale
