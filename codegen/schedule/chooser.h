// Who schedules for a machine: tasks of one thread (cpu.h) or blocks of threads (gpu.h). The one place that
// chooses between the two; what they have in common asks for a fact of the Target.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/schedule/member.h"
#include "codegen/schedule/segment.h"
#include "codegen/schedule/staging.h"

namespace bitale {

struct Chooser {
    Stmts (*pointwise)(const Member&, const Target&, KernelBuilder&);
    Stmts (*reduce)(const Member&, const Target&, KernelBuilder&);
    std::optional<Stmts> (*with_positions)(const Member&, const Member& also, const Target&, KernelBuilder&);
    SplitReduce (*split)(const Member&, const Target&, KernelBuilder&, int partial_place, const Int& chunk);
    Int (*tasks_of_finish)(const Member&, const KernelBuilder&);
    Stmts (*finish)(const Member&, KernelBuilder&, int partial_place, const Int& chunks, const Int& task);
    // The body of a segment whose tasks are chunks of the reduction, for one whose rows need no copies;
    // nothing where rows are walked one by one. `row` is the split loop's variable in the member's nest, of
    // `extent` iterations in all. The segment comes with a task for each chunk, and leaves with several in
    // one task where that is better.
    std::optional<Stmts> (*chunks)(const Member&, const Target&, KernelBuilder&, int partial_place,
                                   const Int& row, const Int& extent, Segment&);
    // Scratch of the partial results of a chunk whose rows do need copies.
    std::int64_t (*bytes_beside_copies)(const Nest&, const Shape& results, const ReductionTree&);
    // Of a group that collapses() or is moved as a whole: its segment; nothing of any other one.
    std::optional<Segment> (*whole_group)(const Group&, const SegmentContext&, KernelBuilder&,
                                          const std::string& title, std::string& notes);
    // The rows and parts of a task; `time`: predicted of a candidate.
    TaskPlan (*tasks)(const Group&, const SegmentContext&, const RowOf&,
                      const std::function<double(const TaskPlan&)>& time);
    // Scratch that members need in turns while they are computed.
    std::int64_t (*bytes_in_turns)(const Group&, const SegmentContext&, std::int64_t rows);
    // Whether a value of the nest is a group of its own whose tasks are tiles of it; then its segments.
    bool (*is_tiled)(const Nest&, const ReductionTree&);
    std::vector<Segment> (*tiles)(int value, const SegmentContext&, KernelBuilder&, const std::string& title,
                                  std::string& notes);
    // Columns of a task that walks a prefix along their rows.
    std::int64_t (*columns_of_prefix)(const Int& columns);
    std::int64_t words_in_order;  // that an element of more than 32 bits takes while its row is sorted
};

const Chooser& chooser_of(const Target& target);

}  // namespace bitale
