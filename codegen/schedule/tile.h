// The tile schedule: several results side by side in vector lanes and, for sums of products, along a second
// axis that one operand does not depend on, so that each loaded element serves several results.
#pragma once

#include "codegen/schedule/builder.h"
#include "codegen/schedule/lanes.h"
#include "codegen/schedule/member.h"

namespace bitale {

// `vector` is the parallel loop that runs in lanes.
Stmts schedule_tile(const Member& member, KernelBuilder& builder, int vector, TileUse use = TileUse::fresh);

}  // namespace bitale
