// One element of each row, chosen by an integer label: "pick", and its transpose "unpick".
#pragma once

#include "ops/dsl/compose.h"

namespace bitale {

const Op* pick_op();  // x [n, classes], labels [n]: x[i, labels[i]] as [n]
const Op*
unpick_op();  // g [n], labels [n]; "extent" (Int): [n, extent] with g[i] at [i, labels[i]], 0 elsewhere

Term pick(const Term& x, const NodePtr& labels);
Term unpick(const Term& g, const NodePtr& labels, const Int& extent);

// Throws TypeError unless the labels are integers, ShapeError unless they are [n] for x of [n, classes].
void require_labels(const NodePtr& x, const NodePtr& labels, const char* op, Where where);
// n is the same for x and labels; 0 <= label < classes. Every op that takes labels checks them, so that a
// function which computes a gradient alone checks them too.
// `loss`: the operation that the user wrote, as far as it is known.
std::vector<Equality> label_equalities(const NodePtr& x, const NodePtr& labels, const std::string& loss);
std::vector<Check> label_checks(const NodePtr& labels, const Int& classes, const std::string& loss,
                                Where where);
// The oracle's labels. Throws IndexError for one out of range.
std::vector<std::int64_t> checked_labels(const Array& labels, std::int64_t classes, Where where);

void register_pick_ops();

}  // namespace bitale
