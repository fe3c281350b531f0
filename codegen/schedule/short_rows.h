// Reductions of short rows on a CPU, in lanes: several results side by side. What the lanes of 16 rows hold
// is turned, and then 16 results are combined at once where each by itself would take as many operations.
//
//     for each block of 16 results:
//         for each result r:  parts[r][lane] = what the lane has of its row
//         across = parts, turned
//         for w = 8, 4, 2, 1:  for l < w:  across[l][all 16] with across[l + w][all 16]
//         results = across[0][all 16]
//
// Sums of floats are added by the shuffles that turn them.
#pragma once

#include <optional>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/lanes.h"
#include "codegen/schedule/member.h"

namespace bitale {

// Longer rows take so long that how their lanes meet does not count.
bool is_short_row(const Nest& nest, const ReductionTree& tree);
// Results that a task needs to have side by side.
constexpr std::int64_t rows_side_by_side = 16;

// Nothing where rows are long, or no loop over results has enough of them.
std::optional<Stmts> schedule_short_rows(const Member& member, KernelBuilder& builder, TileUse use);

}  // namespace bitale
