#include "codegen/schedule/chooser.h"

#include <utility>

#include "codegen/schedule/collapse.h"
#include "codegen/schedule/cpu.h"
#include "codegen/schedule/flat.h"
#include "codegen/schedule/gpu.h"
#include "codegen/schedule/gpu_pointwise.h"
#include "codegen/schedule/gpu_tasks.h"
#include "codegen/schedule/gpu_tile.h"
#include "codegen/schedule/gpu_transpose.h"
#include "codegen/schedule/prefix.h"
#include "codegen/schedule/rows_of_task.h"

namespace bitale {

namespace {

using Predicted = std::function<double(const TaskPlan&)>;

constexpr Chooser of_one_thread{
    cpu::schedule_pointwise,
    cpu::schedule_reduce,
    cpu::schedule_with_positions,
    cpu::schedule_split,
    cpu::tasks_of_finish,
    cpu::schedule_finish,
    cpu::schedule_chunks,
    [](const Nest&, const Shape&, const ReductionTree&) { return std::int64_t{0}; },
    [](const Group& group, const SegmentContext& context, KernelBuilder& builder, const std::string& title,
       std::string& notes) -> std::optional<Segment> {
        if (!collapses(group, context.values)) return {};
        return schedule_flat(group, context, builder, title, notes);
    },
    [](const Group& group, const SegmentContext& context, const RowOf& row, const Predicted&) {
        return plan_tasks(group, context, row);
    },
    [](const Group&, const SegmentContext&, std::int64_t) { return std::int64_t{0}; },
    [](const Nest&, const ReductionTree&) { return false; },
    nullptr,  // none is
    cpu::columns_of_prefix,
    4,  // twice a key above a position
};

constexpr Chooser of_block{
    [](const Member& member, const Target&, KernelBuilder&) { return gpu::schedule_pointwise(member); },
    [](const Member& member, const Target&, KernelBuilder& builder) {
        return gpu::schedule_reduce(member, builder);
    },
    [](const Member&, const Member&, const Target&, KernelBuilder&) { return std::optional<Stmts>(); },
    [](const Member& member, const Target&, KernelBuilder& builder, int partial_place, const Int& chunk) {
        return gpu::schedule_split(member, builder, partial_place, chunk);
    },
    gpu::tasks_of_finish, gpu::schedule_finish,
    [](const Member& member, const Target&, KernelBuilder& builder, int partial_place, const Int& row,
       const Int& extent, Segment& segment) {
        return gpu::schedule_chunks(member, builder, partial_place, row, extent, segment);
    },
    // Of all lanes.
    [](const Nest& nest, const Shape& results, const ReductionTree& tree) {
        if (tree.by_rows) return std::int64_t{0};
        return count_of(results).constant() * tree.lanes * tree.groups * bytes_of(accumulator_of(nest));
    },
    [](const Group& group, const SegmentContext& context, KernelBuilder& builder, const std::string& title,
       std::string& notes) -> std::optional<Segment> {
        if (collapses(group, context.values))
            return gpu::schedule_pointwise_group(group, context, builder, title, notes);
        if (const std::optional<gpu::Transpose> t = gpu::match_transpose(group, context.values))
            return gpu::schedule_transpose(*t, context, builder, title, notes);
        return {};
    },
    [](const Group& group, const SegmentContext& context, const RowOf&, const Predicted& time) {
        return gpu::fastest_plan(group, context, time);
    },
    // Pieces of products take turns in the same bytes (kernel/shared_memory.h).
    gpu::bytes_of_pieces, gpu::is_tiled, gpu::schedule_tiles, gpu::columns_of_prefix,
    3,  // a key and two positions, between which threads merge
};

}  // namespace

const Chooser& chooser_of(const Target& target) {
    return target.tasks_have_threads() ? of_block : of_one_thread;
}

Stmts schedule_pointwise(const Member& member, const Target& target, KernelBuilder& builder) {
    return chooser_of(target).pointwise(member, target, builder);
}

std::optional<Stmts> schedule_with_positions(const Member& member, const Member& also, const Target& target,
                                             KernelBuilder& builder) {
    return chooser_of(target).with_positions(member, also, target, builder);
}

Stmts schedule_reduce(const Member& member, const Target& target, KernelBuilder& builder) {
    // Of no results there is nothing to schedule.
    for (const Loop& l : member.nest.parallel)
        if (l.extent.range().high <= 0) return {};
    return chooser_of(target).reduce(member, target, builder);
}

SplitReduce schedule_split(const Member& member, const Target& target, KernelBuilder& builder,
                           int partial_place, const Int& chunk) {
    return chooser_of(target).split(member, target, builder, partial_place, chunk);
}

Int tasks_of_finish(const Target& target, const Member& member, const KernelBuilder& builder) {
    return chooser_of(target).tasks_of_finish(member, builder);
}

Stmts schedule_finish(const Member& member, const Target& target, KernelBuilder& builder, int partial_place,
                      const Int& chunks, const Int& task) {
    return chooser_of(target).finish(member, builder, partial_place, chunks, task);
}

}  // namespace bitale
