// Leaves made of lengths: iota, length, range.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* iota_op();    // "length" (Int): int64 0, 1, ..., length - 1
const Op* length_op();  // "value" (Int): an int64 scalar
const Op* range_op();   // start (rank-0 integer); "length" (Int): int64 start, start + 1, ...; a composite

NodePtr make_iota(const Int& length, Where where);
NodePtr make_length(const Int& value, Where where);  // a constant where the value is one

}  // namespace bitale
