// Eigenvalues and eigenvectors in the wide oracle.
#pragma once

#include "ops/oracle/wide.h"

namespace bitale {

// As the op eigh: a [..., n, n] -> [..., n + 1, n]. An eigenvalue is off by as much as the matrix is, an
// eigenvector by that over the distance to the next eigenvalue; where this is more than the distance, or may
// turn the vector's sign, its error is infinite.
WideValue wide_eigh(const WideValue& a);

}  // namespace bitale
