// Staging: values that a task reads many times are copied into its scratch first, a row at a time, padding
// included.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "codegen/schedule/segment.h"

namespace bitale {

struct StagedCopy {
    int value = 0;
    int place = -1;        // once the scratch exists
    std::vector<Int> low;  // of the copy's index space; beyond the value's own where reads are guarded
    std::vector<Int> extents;
    Scalar outside;          // what guarded reads give there; null: reads keep their guards
    Shape scratch;           // extents of one block of rows; in memory, of all rows
    std::int64_t bytes = 0;  // of the scratch; in memory, of one row
    bool in_memory = false;  // a buffer of the program, of which a task writes and reads its own rows
    Nest nest;               // the copy itself over the whole first axis, with everything inlined
    bool filled = false;     // with `outside` first, then the nest is over the value's own index space
    std::size_t after = 0;   // so many members of the group have to be computed before
};

// The variable of the first axis, in a member's nest.
using RowOf = std::function<Int(const Nest&)>;

// The copies for a group's tasks of `block` rows. On a CPU, what sums of products read and does not fit
// beside the `used` bytes of scratch lies in memory. `of_members`: copies may be made of what the group
// itself computes. `scattered`: members that skip the zeros of what they read, and read nothing outside.
std::vector<StagedCopy> plan_copies(const Group& group, const SegmentContext& context, const RowOf& row,
                                    std::int64_t block, std::int64_t used, bool of_members,
                                    const std::set<int>& scattered);

// A value's nest with all inlined values composed into it, and those staged ones that have no copy.
Nest composed_nest(const Values& values, int v, const std::function<bool(int operand)>& copied);

}  // namespace bitale
