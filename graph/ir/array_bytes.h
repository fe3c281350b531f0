// How many bytes an array takes, before there is one.
#pragma once

#include <cstdint>

#include "bitale/array.h"

namespace bitale {

// ShapeError for a negative length, and where there are more than can be counted.
std::int64_t bytes_of(DType dtype, const Dims& shape);

}  // namespace bitale
