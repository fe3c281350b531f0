// Memory of the program for rows of a task's own: what does not live at the same time takes turns at it.
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

// When something is there, in the order in which a task computes.
struct Stay {
    int value = 0;
    bool is_copy = false;  // of it, in memory
    int first = 0, last = 0;
    Type type;
};

// Of each the number of its room. What is in one room has one type, and none comes before the one before has
// gone.
std::vector<std::size_t> rooms_for(const std::vector<Stay>& stays);

// Those of a group whose tasks compute whole rows: copies that lie in memory, and members that only the group
// reads and that are not `local`.
std::vector<Stay> stays_in_memory(const Group& group, const SegmentContext& context,
                                  const std::vector<StagedCopy>& copies, const std::map<int, int>& local,
                                  const RowOf& row, const std::set<int>& scattered);

// The buffers of a segment's rooms, while it is made.
class Rooms {
  public:
    // Gives members their buffers, of which each task has its `part`.
    void plan(const std::vector<Stay>& stays, const Part& part, const SegmentContext& context,
              KernelBuilder& builder);
    void enter(StagedCopy& copy) const;  // before it is made, it gets the buffer of one that has gone
    void leave(const StagedCopy& copy);  // once it is made, the next one may have its buffer

  private:
    std::map<int, std::size_t> room_of_copy_;  // by its value
    std::map<std::size_t, int> buffer_of_room_;
};

}  // namespace bitale
