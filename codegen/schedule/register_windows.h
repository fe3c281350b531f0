// Windows in the vector registers of a CPU: where neighbouring results read neighbouring elements, as
// channels that lie side by side do, a register holds one element of each of their windows. The best one and
// its position come from the same registers.
#pragma once

#include <optional>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// Of maxima and minima, or of their positions; nothing where lanes are not neighbours in memory.
std::optional<Stmts> schedule_register_windows(const Member& member, const Target& target,
                                               KernelBuilder& builder);

// Lets the first member, the best elements of windows, store the positions that the second one is asked for.
// False, and nothing is changed, unless both are about the same windows and these run in registers.
bool take_positions(Member& best, const Member& positions, const Target& target,
                    const KernelBuilder& builder);

}  // namespace bitale
