// Elements at positions of their own rows.
#pragma once

#include "graph/ir/op.h"

namespace bitale {

// x [..., n], positions [..., count] within its rows, any integers -> [..., count]; a composite: take_along
// (sort.h) whose positions the user gives, so that calls look at them.
const Op* take_along_axis_op();

void register_along_ops();  // its gradient too

}  // namespace bitale
