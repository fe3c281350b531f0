// Sums of small integers in floating point, added up over the parts of a batch without rounding.
#pragma once

#include <optional>

#include "ops/reduce/integer_sum.h"

namespace bitale {

struct ExactTotal {
    NodePtr integers;  // the sum in int64
    IntegerSum terms;  // what the sum of all parts is, of the total of these
};

// Of what a part of the batch adds to a total, which has `count` terms for each result. All rows at once are
// added as integers and rounded once (exact_sum of nest/tree.h, rules sum-affine and sum-scaled): a mean that
// parts round otherwise would turn some of the maxima that pooling finds in what the mean is taken from.
// Nothing where the sum is of other numbers.
std::optional<ExactTotal> exact_total(const NodePtr& sum, const Int& count);

}  // namespace bitale
