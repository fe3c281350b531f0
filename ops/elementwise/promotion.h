// Which dtype elementwise operands meet in.
#pragma once

#include <optional>

#include "bitale/array.h"
#include "graph/base/options.h"

namespace bitale {

constexpr bool is_half(DType t) { return t == DType::float16 || t == DType::bfloat16; }
// What is computed on for values that are stored as t: float32 for the half types.
constexpr DType wide_of(DType t) { return is_half(t) ? DType::float32 : t; }

// The common dtype of two typed operands. strict: the wider of one kind, the signed integer that holds both
// of two integers, float32 for an integer with float32; a boolean takes the other's. Nothing where a cast
// must be written: uint64 with signed integers, which no integer holds, integers with float64, and the half
// types, which are storage only. theano: NumPy's table, which is Theano's, so that only the half types are
// left over.
std::optional<DType> promote(DType a, DType b, Options::Promotion promotion = Options::Promotion::strict);
// What a literal of its own C++ dtype becomes next to `typed`: the same dtype, save that a real number next
// to integers makes float32, and an integer next to booleans keeps its own.
DType promote_literal(DType literal, DType typed);
// The smallest signed integer dtype that holds the integer: what Theano takes a literal for.
DType smallest_signed(const Array& integer);
// Whether one is uint64 and the other signed: integers that can be compared, but have no common dtype.
constexpr bool share_no_integer(DType a, DType b) {
    return (a == DType::uint64 && is_signed_integer(b)) || (b == DType::uint64 && is_signed_integer(a));
}

}  // namespace bitale
