// Reductions of the same elements in one loop: maxima and their positions, or sums that share what takes long
// to compute (group/together.h).
//
//     for results: for terms: first += a(term), second += b(term)
#pragma once

#include <optional>
#include <vector>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// The members' loops become those of the first. Nothing where there is no schedule for all of them.
std::optional<Stmts> schedule_together(std::vector<Member> members, const Target& target,
                                       KernelBuilder& builder);

}  // namespace bitale
