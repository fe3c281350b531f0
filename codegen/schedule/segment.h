// Schedules a group as one segment of a kernel: tasks over its first axis, scratch for what stays inside,
// staged copies of what is read often.
#pragma once

#include <functional>
#include <optional>

#include "codegen/group/group.h"
#include "codegen/program.h"
#include "codegen/schedule/builder.h"
#include "codegen/schedule/task_plan.h"

namespace bitale {

// What scheduling has to know of the program around the kernel.
struct SegmentContext {
    const Values& values;
    const Grouping& grouping;
    const Graph& graph;
    const Target& target;
    std::function<bool(int value)> leaves_group;   // read by another group, or required
    std::function<int(int value)> buffer_to_read;  // program buffer of a leaf or a stored value
    std::function<std::vector<int>(int value)> buffers_to_write;
    std::function<int(Type type, const std::string& name, const std::string& reason, BufferInfo::Role role)>
        new_buffer;  // arena
    // Puts a stored value into the arena's buffer of another one, which is of the same type.
    std::function<void(int value, int other)> put_into_buffer_of;
    std::function<int()> errors_buffer;

    // The place of a leaf or a stored value.
    int in_memory(int value, KernelBuilder& builder) const {
        const Type type = values.list[static_cast<std::size_t>(value)].stored_type();
        return builder.global(buffer_to_read(value), type.dtype, type.shape, false);
    }
};

// Adds a segment to the first phase, and to the second one when the group is a split reduction. Notes say in
// words what was decided. On a GPU the rows of a task, and the cut of a second axis, may be given
// (rows_of_task.h).
void schedule_group(const Group& group, const SegmentContext& context, KernelBuilder& builder, Phase& first,
                    Phase& second, std::string& notes, std::optional<TaskPlan> plan = {});

}  // namespace bitale
