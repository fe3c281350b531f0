// Staging: values that a task reads many times are copied into its scratch first, a row at a time, padding
// included. Every read of such a value is decided by itself: one in the task's own row goes to the copy, any
// other to where the value is, or to what it is computed from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "codegen/schedule/segment.h"

namespace bitale {

struct StagedCopy {
    int value = 0;
    int place = -1;            // once the scratch exists
    std::vector<Int> low;      // of the copy's index space; beyond the value's own where reads are guarded
    std::vector<bool> window;  // axes of which a task copies what its part of a row reads, and no more
    std::vector<Int> extents;
    Scalar outside;          // what guarded reads give there; null: reads keep their guards
    Shape scratch;           // extents of one block of rows; in memory, of all rows
    Int bytes;               // of the scratch; in memory, of one row
    bool in_memory = false;  // a buffer of the program, of which a task writes and reads its own rows
    int buffer = -1;         // then the one of what was there before; -1: a new one
    Nest nest;               // the copy itself over the whole first axis, with everything inlined
    bool filled = false;     // with `outside` first, then the nest is over what the value itself has
    bool factor = false;     // of sums of products, which would ask for each element where it is
    std::size_t after = 0;   // so many members of the group have to be computed before
};

// The loop over the first axis, in a member's nest.
using RowOf = std::function<Loop(const Nest&)>;

// What a task has that makes copies. Whole rows: copies may be made of what the group itself computes, and
// lie in memory. Terms of a sum in chunks: not of what the group computes. Parts of rows: neither, as each
// task of a row makes all of its copies.
enum class CopiedBy : std::uint8_t { rows, chunks, parts };

// What a task has of a row that is cut: the axis of each member, and where its part begins. Null: of whole
// rows.
struct PartOfRow {
    const AxisCut* cut = nullptr;
    Int first;
};

// The copies for a group's tasks of `block` rows, or of parts of a row. On a CPU, what sums of products read
// and does not fit beside the `used` bytes of scratch lies in memory. `scattered`: members that skip the
// zeros of what they read, and read nothing outside.
std::vector<StagedCopy> plan_copies(const Group& group, const SegmentContext& context, const RowOf& row,
                                    std::int64_t block, std::int64_t used, CopiedBy by,
                                    const std::set<int>& scattered, const PartOfRow& part = {});

// The copies at hand, by value, and the nests that read them: the operand of such a read is the copy, by the
// number of its value. Staged values that have no copy are inlined, and so is each read of others
// that is in no row of the task's own.
class CopyReads {
  public:
    CopyReads(const Values& values, const std::map<int, StagedCopy>& copies)
        : values_(values), copies_(copies) {}

    // A member's nest. `scattered`: it skips the zeros of what it reads, and reads nothing outside.
    Nest member(int v, const RowOf& row, bool scattered) const;
    // That of a copy.
    Nest copy(const StagedCopy& copy) const;
    // The copy that a read was sent to; null: to none.
    const StagedCopy* sent_to(const ScalarNode& read) const;

  private:
    Nest sent(const Nest& nest, const Loop& rows, int but_for, bool scattered) const;

    const Values& values_;
    const std::map<int, StagedCopy>& copies_;
};

// Whether the read stays in the row of the loop, and that row exists for every turn of it.
bool in_own_row(const ScalarNode& read, const std::vector<Guard>& guards, const Nest& nest, const Loop& rows,
                const Shape& shape);

}  // namespace bitale
