// Choices among values that are computed alike, as each part of an array that was rolled is: the function is
// computed once, of elements that are chosen.
#pragma once

#include <vector>

#include "graph/ir/nest.h"

namespace bitale {

// f(a) where the guards hold, else f(b), as f of such choices; as a choice of the two where these have less
// in common than choices to make.
Scalar select_of_parts(const std::vector<Guard>& guards, const Scalar& value, const Scalar& otherwise);

}  // namespace bitale
