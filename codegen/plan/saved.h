// Values that are kept for gradients, as opposed to those that only the forward computation or only the
// backward one passes on.
#pragma once

#include <vector>

#include "codegen/group/values.h"

namespace bitale {

// By number of the value: of the forward computation, and read by a gradient.
std::vector<bool> saved_for_gradients(const Values& values);

}  // namespace bitale
