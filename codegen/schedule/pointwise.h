// Maps on a CPU: loops over results that are one axis in memory run as one; what is read across the vector
// lanes passes through tiles that are transposed in registers; lanes that share an element in pairs, as those
// of a pooled map do, are taken apart.
#pragma once

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

Stmts schedule_map(const Member& member, KernelBuilder& builder);

}  // namespace bitale
