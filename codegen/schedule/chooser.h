// Who schedules for a machine: tasks of one thread (cpu.h) or blocks of threads (gpu.h). The one place that
// chooses between the two; what they have in common asks for a fact of the Target.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/schedule/member.h"
#include "codegen/schedule/segment.h"
#include "codegen/schedule/staging.h"

namespace bitale {

struct Chooser {
    Stmts (*pointwise)(const Member&, const Target&, KernelBuilder&);
    Stmts (*reduce)(const Member&, const Target&, KernelBuilder&);
    std::optional<Stmts> (*with_positions)(const Member&, const Member& also, const Target&, KernelBuilder&);
    SplitReduce (*split)(const Member&, const Target&, KernelBuilder&, int partial_place, const Int& chunk);
    std::int64_t (*finished_by_task)(const ReductionTree&);
    Stmts (*finish)(const Member&, KernelBuilder&, int partial_place, const Int& chunks, const Int& task);
    // Of a group that collapses() or is moved as a whole: its segment; nothing of any other one.
    std::optional<Segment> (*whole_group)(const Group&, const SegmentContext&, KernelBuilder&,
                                          const std::string& title, std::string& notes);
    // The rows and parts of a task; `time`: predicted of a candidate.
    TaskPlan (*tasks)(const Group&, const SegmentContext&, const RowOf&,
                      const std::function<double(const TaskPlan&)>& time);
    // Scratch that members need in turns while they are computed.
    std::int64_t (*bytes_in_turns)(const Group&, const SegmentContext&, std::int64_t rows);
};

const Chooser& chooser_of(const Target& target);

}  // namespace bitale
