// Windows in the vector registers of a CPU: where neighbouring results read neighbouring elements, as
// channels that lie side by side do, a register holds one element of each of their windows. The best one and
// its position come from the same registers.
#pragma once

#include <optional>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// Of maxima and minima, or of their positions; `also`: the other of the two, over the same loops, or null.
// Nothing where lanes are not neighbours in memory.
std::optional<Stmts> schedule_register_windows(const Member& member, const Member* also, const Target& target,
                                               KernelBuilder& builder);

}  // namespace bitale
