// Neighbouring axes that everything walks as one, behind an axis that is reduced or scanned, are one axis:
// the mean over time of [times, points, 3] is that of [times, 3 * points]. What runs in the lanes of
// registers, and what tasks are cut of, is then as long as it can be, whatever shape the program gives it.
#pragma once

#include "graph/ir/graph.h"

namespace bitale {

// What repeats a small operand along a single axis of the two walks a copy that has both: with it, the sum
// over points and channels of [images, points, 3] and an operand [3] is one over 3 * points neighbours in
// memory.
//
// Elementwise ops, reductions, scans, broadcasts, slices, joins, transposes and views that keep two axes side
// by side carry the joined axis along. Leaves are reshaped to it, results back.
void join_axes(Graph& graph);

}  // namespace bitale
