// Logarithms of values that overflow or underflow, computed from the logarithms of what these consist of.
#pragma once

#include "graph/rewrite/rule.h"

namespace bitale {

// log(x) for an x that contains exp, softmax or sigmoid through sums, products, quotients, means and views;
// null where x is nothing of the kind, where a sign is unknown, or where the logarithm is safe as it is:
// log(softmax(z) + 1e-8).
NodePtr log_of(const NodePtr& x, const Match& match, Where where);
// log(x) for an x that may overflow or underflow and is known not to be below 0; null for any other.
NodePtr log_of_positive(const NodePtr& x, const Match& match, Where where);
// log(1 - x) for exp, sigmoid, and views of these.
NodePtr log_of_rest(const NodePtr& x, const Match& match, Where where);
// Whether x may overflow where its logarithm does not.
bool may_overflow(const NodePtr& x, const Match& match);

}  // namespace bitale
