// Prefixes (nest/prefix.h), along an axis once:
//
//     for some rows of results side by side:
//         running = the neutral element
//         for each place: result = running; running = combine(running, element)
//
// or, where the axis is not the last one, with the columns behind it in lanes:
//
//     running[columns] = the neutral element
//     for each place: for each column: result = running; running = combine(running, element)
//
// and the other way round in each step where the place's own element counts. Elements of rows that are more
// than read are computed some places ahead, in lanes.
#pragma once

#include <optional>
#include <string>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/segment.h"

namespace bitale {

// Nothing where it is no prefix of rows.
std::optional<RowsOfMember> rows_of_prefix(const Nest& nest);

// On a CPU.
Stmts schedule_prefix(const Member& member, const Target& target, KernelBuilder& builder);
// On a GPU each thread walks the axis for a row, or for a column.
Stmts schedule_prefix_in_threads(const Member& member, KernelBuilder& builder);

// Columns of a task: for one thread as many as stay in the nearest cache; one for each thread of a block.
namespace cpu {
std::int64_t columns_of_prefix(const Int& columns);
}
namespace gpu {
std::int64_t columns_of_prefix(const Int& columns);
}

// A prefix of columns, by itself: a task has a part of the columns. `placed`: its nest with reads of places;
// `past`: the result is larger than what caches hold.
Segment schedule_prefix_of_columns(int value, const Nest& placed, bool past, const SegmentContext& context,
                                   KernelBuilder& builder, const std::string& title);

}  // namespace bitale
