// Diagonals of matrices.
#pragma once

#include "graph/ir/op.h"

namespace bitale {

const Op* diagonal_op();  // x [..., n, n] -> [..., n]; a composite

}  // namespace bitale
