// Which dtype elementwise operands meet in.
#pragma once

#include <optional>

#include "bitale/dtype.h"

namespace bitale {

constexpr bool is_half(DType t) { return t == DType::float16 || t == DType::bfloat16; }

// The common dtype of two typed operands: the wider of one kind, NumPy's table within integers (int64 with
// uint64: int64), float32 for an integer with float32; a boolean takes the other's. Nothing where a cast must
// be written: integers with float64, and the half types, which are storage only.
std::optional<DType> promote(DType a, DType b);
// What a literal of its own C++ dtype becomes next to `typed`: the same dtype, save that a real number next
// to integers makes float32, and an integer next to booleans keeps its own.
DType promote_literal(DType literal, DType typed);

}  // namespace bitale
