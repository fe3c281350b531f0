// For each element of a row the product of all others, as the gradient of prod needs it: a quotient would
// fail where an element is zero, so it is what is before it times what is behind it.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* prod_of_others_op();  // x [rows, n]: of each element the product of the others in its row

}  // namespace bitale
