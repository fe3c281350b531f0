// Sums of small integers in floating point, added up over the parts of a batch without rounding.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

struct ExactTotal {
    NodePtr integers;  // the sum in int64; null where the sum is of other numbers
    NodePtr scale;     // a scalar by which the total of these is to be multiplied, or null
};

// Of what a part of the batch adds to a total. All rows at once are added as integers and rounded once
// (exact_sum of nest/tree.h, rule sum-scaled): a mean that parts round otherwise would turn some of the
// maxima that pooling finds in what the mean is taken from.
ExactTotal exact_total(const NodePtr& sum);

}  // namespace bitale
