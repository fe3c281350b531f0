// Matrix products on a CPU whose factors do not lie in memory as vector registers want them, because they are
// cast, gathered, turned or computed where they are read: pieces of them are copied into scratch first, a
// panel of neighbouring results at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "codegen/nest/access.h"
#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// The loop over results of a matrix product that is best run in vector lanes.
std::optional<std::size_t> lane_axis(const Nest& nest, const ShapeOf& shape_of);

// Rows of one of the axes, the first if nothing else is said. Nothing where it is no matrix product, nor
// several of them that have this axis each.
std::optional<RowsOfMember> rows_of_product(const Nest& nest, const ShapeOf& shape_of, std::size_t axis = 0);

// Nothing where it is no matrix product, or one too short to be worth copies.
std::optional<Stmts> schedule_panels(const Member& member, const Target& target, KernelBuilder& builder);

}  // namespace bitale
