// Which cores this process may use: affinity mask, one hardware thread per core, cgroup quota.
#pragma once

#include <vector>

namespace bitale {

// CPU numbers, one hardware thread of each core in the affinity mask, at most as many as the cgroup's quota
// pays for; at least one entry.
std::vector<int> usable_cores();

}  // namespace bitale
