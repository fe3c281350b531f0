// Sums in lanes on a CPU whose results share what they read, such as distances between two sets of points:
// results of a few rows side by side, in registers.
//
//     for each block of rows, for each block of 16 columns:
//         for each column:
//             for each block of lanes:  registers[row][lane] += body(row, column, lane)
//             parts[row][column][lane] = registers
//         for each row:
//             across = parts[row], turned
//             for w = 8, 4, 2, 1:  for l < w:  across[l][all 16] += across[l + w][all 16]
//             results = across[0][all 16]
//
// The partial results of each result, and their order, are those of a row by itself (short_rows.h).
#pragma once

#include <optional>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// Nothing where no loop over results leaves a factor as it is, or the body is more than sums and products.
std::optional<Stmts> schedule_shared_lanes(const Member& member, const Target& target,
                                           KernelBuilder& builder);

// Rows of its first axis that a task needs; nothing where that is not the axis of the rows.
std::optional<RowsOfMember> rows_of_shared_lanes(const Nest& nest, const ReductionTree& tree,
                                                 const ShapeOf& shape_of);

}  // namespace bitale
