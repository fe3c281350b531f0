// Reads of elements, in kernels that tests write by hand.
#pragma once

#include "codegen/kernel/intrinsics.h"

namespace bitale {

inline Scalar element(int place, const Int& at = 0) { return place_read(DType::float32, place, {at}); }

}  // namespace bitale
