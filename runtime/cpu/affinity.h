// Which cores this process may use: affinity mask, one hardware thread per core, cgroup quota; and in which
// slices of time its threads share them with other processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace bitale {

// CPU numbers, one hardware thread of each core in the affinity mask, at most as many as the cgroup's quota
// pays for; at least one entry.
std::vector<int> usable_cores();

// The slices of processor time that the calling thread asks for. With short ones it gets no more time, but is
// not made to wait for the end of another process's slice of some milliseconds when it wakes up. Linux knows
// such requests from 6.12 on; before, and for a thread of another policy than the usual one, nothing changes.
class Slices {
  public:
    // A tenth of a millisecond, for now.
    void shorten();
    // As they were, if a tenth of a second has passed since they were last to be short.
    void restore_when_calm() {
        if (before_ != 0) restore_if_calm();
    }

    // In nanoseconds; 0 where the system does not say.
    static std::uint64_t current();

  private:
    void restore_if_calm();

    std::uint64_t before_ = 0;  // nanoseconds; 0: they are not short
    std::chrono::steady_clock::time_point last_;
};

}  // namespace bitale
