// Maps on a CPU: loops over results that are one axis in memory run as one; what is read across the vector
// lanes passes through tiles that are transposed in registers; lanes that share an element in pairs, as those
// of a pooled map do, are taken apart.
#pragma once

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

Stmts schedule_map(const Member& member, KernelBuilder& builder);

// Rows of the first axis that a task should have, because some read runs along it: 0 if none does.
std::int64_t rows_of_tiles(const Nest& nest, const ShapeOf& shape_of);

}  // namespace bitale
