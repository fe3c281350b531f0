// Sums at places that a list tells (nest/puts.h) on a CPU:
//
//     for some rows:
//         results = 0
//         for each point: results[key(point)] += value(point), if the row has such a place
//
// Largest values likewise.
#pragma once

#include <optional>

#include "codegen/nest/puts.h"
#include "codegen/schedule/member.h"

namespace bitale {

// Nothing where it is no such sum.
std::optional<RowsOfMember> rows_of_puts(const Nest& nest);

// The member of a task that has some rows of such a sum.
Stmts schedule_puts(const Member& member);

}  // namespace bitale
