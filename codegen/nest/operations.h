// How many operations the values of a nest take at least.
#pragma once

#include "graph/ir/nest.h"

namespace bitale {

// Rough cycles for all points of a nest. A part of the body counts once for each point of the loops that it
// depends on: what a product does to an operand before it multiplies counts once an element, not once a use,
// as where a kernel keeps a copy of the part that it needs. Where only every second or third index is asked
// for, as in gradients of convolutions with a stride, the others do not count.
Int operations_of(const Nest& nest);

}  // namespace bitale
