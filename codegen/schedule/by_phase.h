// Sums that visit the terms at which an index can be divided: their results phase by phase (nest/phases.h).
#pragma once

#include <vector>

#include "codegen/schedule/member.h"

namespace bitale {

// Members that together have the results of this one, which is empty where it is none of those sums.
std::vector<Member> members_by_phase(const Member& member);

}  // namespace bitale
