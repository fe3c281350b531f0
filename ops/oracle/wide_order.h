// Orders of rows in the wide oracle.
#pragma once

#include "ops/oracle/wide.h"

namespace bitale {

// keys [..., n]: of each row the positions of the first `count` keys in order, equal ones as they come, NaN
// greater than all numbers. Where keys may be off by so much that another one could be at the place, the
// position's error is infinite.
WideValue wide_order(const WideValue& keys, std::int64_t count, bool descending, DType dtype);

}  // namespace bitale
