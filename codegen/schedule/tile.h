// The tile schedule: several results side by side in vector lanes and, for sums of products, along a second
// axis that one operand does not depend on, so that each loaded element serves several results.
#pragma once

#include <optional>
#include <vector>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/lanes.h"
#include "codegen/schedule/member.h"

namespace bitale {

// Reductions of the same loops and of one order of terms side by side; `vector` as below. Nothing where terms
// are few, or rows of a second axis share what they load.
std::optional<Stmts> schedule_tiles_together(const std::vector<Member>& members, KernelBuilder& builder,
                                             int vector);
// `vector` is the parallel loop that runs in lanes.
Stmts schedule_tile(const Member& member, KernelBuilder& builder, int vector, TileUse use = TileUse::fresh);

}  // namespace bitale
