// Integers that are computed from indices and constants alone, as x of gather(a, 512 * i + j): as indices
// they are strides, and no element is looked up.
#pragma once

#include <functional>
#include <optional>

#include "bitale/array.h"
#include "graph/ir/nest.h"

namespace bitale {

// Nothing of other scalars, and where the dtype may not hold the number or one on the way, for arrays that
// fit a memory and loops that end some day.
std::optional<Int> integer_of(const Scalar& scalar);

// A constant as an expression of its indices: numbers at equal distances along each axis, as range(0, 5) is.
std::optional<Nest> sequence_of(const Array& constant);

// Whether a map consists of such numbers, of values that are some too.
bool is_arithmetic(const Nest& nest, const std::function<bool(Operand)>& is_number);

// The nest without lets that are such numbers and lie within their extents.
Nest without_known_lets(const Nest& nest);

}  // namespace bitale
