// Sums of rows that each result looks up, as the gradient of a product behind a maximum is: lanes run along
// the rows, and each row is looked up once.
//
//     for terms n: for results o:
//         found = winner[n, o]
//         for lane i: sums[o, i] += x[found, n, i] * g[n, o]
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"
#include "codegen/nest/access.h"
#include "codegen/schedule/loops.h"

namespace bitale {

// Each lane would look up a row of its own, an element at a time, though the elements of rows are neighbours
// along another loop over results.
bool looks_up_rows(const Nest& nest, const Int& lanes, const ShapeOf& shape_of);
// The loops over results, the last one for vector lanes.
std::vector<Loop> in_order_of_lanes(const Nest& nest, const ShapeOf& shape_of);
// The statements in these loops; what the lanes share is found before the last one.
Stmts in_lanes_of_results(const std::vector<Loop>& results, Stmts body, LoopBuilder& loops);

}  // namespace bitale
