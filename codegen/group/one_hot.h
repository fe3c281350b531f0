// Sums all of whose terms but one are zero: of products with rows of ones and zeros, and of gradients of
// maxima.
#pragma once

#include "codegen/group/values.h"

namespace bitale {

// sum over p of where(k == p, f(p), 0) is f(k) if k is in range, else 0; likewise of (k == p) * f(p), unless
// math=strict asks for every product. Loops over such p are dropped from the nests, and lookups take their
// place. So dot(one_hot(k, n), table) reads a row of the table, and the gradient of a filter behind the
// maximum over all places reads one place of each image. disable=one-hot-sums leaves the sums as they are.
void look_up_one_hot(Values& values);

}  // namespace bitale
