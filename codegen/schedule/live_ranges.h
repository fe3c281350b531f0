// Live ranges of what tasks keep in memory for themselves, and the buffers that they share.
//
// A task computes its rows of the members one after another. What no other group reads, and does not fit into
// the task's scratch, lies in buffers that hold the rows of all tasks. With one buffer for several of them
// there are fewer, and the rows of the next one are written where caches hold those of the last one.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "codegen/schedule/staging.h"

namespace bitale {

// From the first write to the last read, in the order in which a task computes.
struct LiveRange {
    int value = 0;
    bool is_copy = false;  // of it, in memory
    int first = 0, last = 0;
    Type type;
};

// Of each range the number of its buffer. Ranges in one buffer have one type and do not overlap.
std::vector<std::size_t> shared_buffers(const std::vector<LiveRange>& ranges);

// The ranges of a group whose tasks compute whole rows: copies that lie in memory, and members that only the
// group reads and that are not `local`.
std::vector<LiveRange> live_ranges_in_memory(const Group& group, const SegmentContext& context,
                                             const std::vector<StagedCopy>& copies,
                                             const std::map<int, int>& local, const RowOf& row,
                                             const std::set<int>& scattered);

// The shared buffers of a segment, while it is made.
class SharedBuffers {
  public:
    // Gives members their buffers, of which each task has its `part`.
    void plan(const std::vector<LiveRange>& ranges, const Part& part, const SegmentContext& context,
              KernelBuilder& builder);
    void take(StagedCopy& copy) const;  // before it is made, it gets the buffer of one that has gone
    void keep(const StagedCopy& copy);  // once it is made, the next one may have its buffer

  private:
    std::map<int, std::size_t> shared_by_copy_;  // by its value
    std::map<std::size_t, int> buffer_of_;
};

}  // namespace bitale
