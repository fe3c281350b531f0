// Prefixes (nest/prefix.h) on a CPU, along an axis once:
//
//     for some rows of results side by side:
//         running = the neutral element
//         for each place: result = running; running = combine(running, element)
#pragma once

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// So many rows are worth a task, where one of the nests is a prefix; 0 where none is.
std::int64_t rows_of_prefixes(const std::vector<Nest>& nests);

Stmts schedule_prefix(const Member& member, KernelBuilder& builder);

}  // namespace bitale
