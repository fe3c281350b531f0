// The second phase of a reduction in chunks whose results lie the other way in memory: gradients of filters
// are summed with their channels side by side, and variables have them apart.
#pragma once

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// Tasks of 16 neighbours in memory of the results, and all that lies beside each of them in the partial
// results.
bool finishes_turned(const Member& member, const KernelBuilder& builder);
Int tasks_of_turned_finish(const Member& member);

//     for the 16 results of the task
//         for chunks
//             for columns, in lanes
//                 sums += partial results
//     for columns, for the 16 results
//         results = sums, transposed in registers
Stmts schedule_turned_finish(const Member& member, KernelBuilder& builder, int partial_place,
                             const Int& chunks, const Int& task);

}  // namespace bitale
