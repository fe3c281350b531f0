// Histograms: sums of one-hot arrays over the axes that tell the numbers.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// sum(one_hot(k, classes), rows) compares each number with each class; counting adds 1 where the number says.
// Each task counts its own points, and the counts of all tasks are added up, as integers: exact in any order.
// Also dot(transpose(one_hot(a, m)), one_hot(b, n)), which counts pairs, and dot(transpose(one_hot(a, m)), g)
// for matrices of so few sums that a task has all of them: rows of g are added up block by block. And
// scatters of a constant, as inc_subtensor(counts, numbers, 1), into 4,096 classes at most, or into four for
// each number. Null where the node is no such sum, or where there are so few classes or points that comparing
// takes less.
NodePtr counts_of(const NodePtr& node);

}  // namespace bitale
