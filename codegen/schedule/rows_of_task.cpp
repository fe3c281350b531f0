#include "codegen/schedule/rows_of_task.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "codegen/nest/compose.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/nest/puts.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/order.h"
#include "codegen/schedule/panels.h"
#include "codegen/schedule/pointwise.h"
#include "codegen/schedule/prefix.h"
#include "codegen/schedule/puts.h"
#include "codegen/schedule/runs.h"
#include "codegen/schedule/shared_lanes.h"
#include "codegen/schedule/short_rows.h"
#include "graph/types/saturated.h"

namespace bitale {

namespace {

constexpr std::int64_t vector_block = 64, widest_vector_block = 256, fewest_vector_blocks = 4;

double results_of_row(const Nest& nest) {
    return typical_count({nest.parallel.begin() + 1, nest.parallel.end()});
}

// Reductions of short rows, one result a row: of several rows they meet as vectors (short_rows.h), while what
// the other members have of these rows stays in the task's cache.
bool gains_by_rows_together(const Group& group, const SegmentContext& context) {
    constexpr double part_of_cache = 0.25;  // the rest is for what they read
    constexpr std::int64_t fewest_tasks = 4;
    const double most_bytes = part_of_cache * static_cast<double>(context.target.local_bytes);
    double bytes = 0;
    bool any = false;
    for (const int v : group.values) {
        const Nest& nest = context.grouping.nests[v];
        const double own = results_of_row(nest), read = typical_count(nest.reduced);
        const bool alone = nest.combine != Combine::none && own == 1;
        if (alone && !is_short_row(nest, context.grouping.trees[v])) return false;
        any = any || alone;
        bytes += std::max(own, group.values.size() > 1 ? read : 1) *
                 bytes_of(context.values.list[v].node->type.dtype);
    }
    return any && bytes * double{rows_side_by_side} <= most_bytes &&
           group.extent.range().high >= fewest_tasks * rows_side_by_side;
}

// Sums that share what they read with those of the next rows, where what the group has of these stays in the
// task's scratch.
std::optional<RowsOfMember> sharing_rows(const Group& group, const SegmentContext& context, const Nest& nest,
                                         const ReductionTree& tree) {
    const std::optional<RowsOfMember> rows = rows_of_shared_lanes(nest, tree, context.values.shapes());
    double bytes = 0;
    for (const int v : group.values)
        bytes +=
            results_of_row(context.grouping.nests[v]) * bytes_of(context.values.list[v].node->type.dtype);
    const bool fits = rows && bytes * static_cast<double>(rows->best) <=
                                  static_cast<double>(context.target.local_bytes) / 2;
    return fits || (rows && group.values.size() == 1) ? rows : std::nullopt;
}

// A reduction whose results run in lanes, side by side as what it reads is.
bool is_run_of_results(const Nest& nest, const ReductionTree& tree, const ShapeOf& shape_of) {
    const int last = static_cast<int>(nest.parallel.size()) - 1;
    return last > 0 && !adds_products(nest) && nest.lets.empty() && nest.guards.empty() && tree.lanes == 1 &&
           vector_loop(nest, shape_of) == last;
}

// Rows that a map passes through tiles, because some read runs along them: 0 if none does. A number for each
// row is no such read.
std::int64_t rows_of_tiles(const Nest& nest, const ShapeOf& shape_of) {
    constexpr std::int64_t fewest_lanes = 8, two_tiles = 32;
    if (nest.combine != Combine::none || nest.parallel.size() < 2) return 0;
    const Loop& first = nest.parallel.front();
    if (first.extent.range().high < fewest_lanes || !unit_stride(nest, first.variable, shape_of)) return 0;
    bool across = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        const Int offset = offset_of(s, shape_of);
        const std::optional<Int> step = stride_of(offset, first.variable);
        across = across || (step && step->is(1) &&
                            std::any_of(nest.parallel.begin() + 1, nest.parallel.end(), [&](const Loop& l) {
                                return l.variable.symbol_id() && depends_on(offset, l.variable.symbol_id());
                            }));
    });
    return across ? two_tiles : 0;
}

std::int64_t rows_of_maps(const Group& group, const SegmentContext& context, double inner) {
    const double most = inner > 0 ? static_cast<double>(pointwise_block) / inner : 1;
    std::int64_t rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(most));
    for (const int v : group.values)
        rows = std::max(rows, rows_of_tiles(fully_composed_nest(context.values, v), context.values.shapes()));
    return rows;
}

// What a member of a group makes of the rows of a task.
struct Wanted {
    double work = 0;          // of a row, in picoseconds of one core
    std::int64_t fewest = 1;  // rows that it needs (RowsOfMember)
};

// How many elements an operation of a member works on: the lanes of a register, as far as its loop fills
// them.
double filled_lanes(const Nest& nest, const ReductionTree& tree, const Target& target,
                    const ShapeOf& shape_of) {
    if (is_prefix(nest) || is_order(nest.combine) || adds_at_places(nest)) return 1;
    const double lanes = std::max(1, target.vector_bytes / 4);
    if (tree.lanes > 1) return lanes;
    int along = vector_loop(nest, shape_of);
    if (nest.combine != Combine::none && is_matrix_product(nest)) {
        const std::optional<std::size_t> axis = lane_axis(nest, shape_of);
        if (axis) along = static_cast<int>(*axis);
    } else if (const std::optional<ChannelAxis> channels = channel_axis(nest)) {
        along = static_cast<int>(channels->loop);
    }
    if (along < 0) return nest.combine == Combine::none ? lanes : 1;
    const double extent = typical(nest.parallel[static_cast<std::size_t>(along)].extent);
    return extent / std::ceil(extent / lanes);
}

double work_of_row(const Nest& nest, const ReductionTree& tree, const SegmentContext& context) {
    constexpr double picoseconds = 160, of_product = 2, of_access = 2, of_sort = 40;
    const double operations = is_order(nest.combine) ? of_sort + cost_of(nest)
                              : adds_products(nest)  ? of_product
                                                     : of_access + cost_of(nest);
    return operations * iterations(nest) / std::max(1.0, typical(nest.parallel[0].extent)) * picoseconds /
           filled_lanes(nest, tree, context.target, context.values.shapes());
}

// Lanes along the rows fill a register, and read whole lines of memory.
std::int64_t fewest_in_lanes(const Nest& nest, const ShapeOf& shape_of) {
    constexpr std::int64_t line = 64;
    std::int64_t rows = rows_side_by_side;
    for_each_read(nest, [&](const ScalarNode& s) {
        const std::optional<Int> step = stride_of(offset_of(s, shape_of), nest.parallel[0].variable);
        if (step && step->is(1)) rows = std::max(rows, line / bytes_of(s.dtype));
    });
    return rows;
}

// Sums in lanes of other results that walk down columns of what they read, each row of results another one:
// those of a line of memory are computed together (schedule/tile.cpp).
bool walks_down_columns(const Nest& nest, const ReductionTree& tree, const ShapeOf& shape_of) {
    if (!adds_products(nest) || tree.lanes > 1 || tree.split || nest.reduced.empty() || !nest.lets.empty())
        return false;
    const int lanes = vector_loop(nest, shape_of);
    if (lanes < 1) return false;
    const Int &row = nest.parallel[0].variable, &term = nest.reduced.back().variable,
              &lane = nest.parallel[static_cast<std::size_t>(lanes)].variable;
    bool found = false;
    for_each_read(nest, [&](const ScalarNode& s) {
        const Int offset = offset_of(s, shape_of);
        if (!row.symbol_id() || !term.symbol_id() || depends_on(offset, lane.symbol_id())) return;
        const std::optional<Int> by_row = stride_of(offset, row), by_term = stride_of(offset, term);
        found = found || (by_row && by_row->is(1) && by_term && by_term->range().low > 1);
    });
    return found;
}

// The share of 16 cores that work while tasks of equal length are done.
double busy_share(double tasks) {
    constexpr double cores = 16;
    return tasks / (std::ceil(tasks / cores) * cores);
}

constexpr double least_task = 5e6, enough_tasks = 64;  // picoseconds

struct TaskSize {
    std::int64_t rows = 1;    // that cost one core least
    std::int64_t fewest = 1;  // what the members need that do most of the work
    double work = 0;          // of a row, in picoseconds of one core
    bool alike = true;        // no member needs several rows, so that fewer of them cost nothing
    bool of_product = false;  // which does most of the work
};

TaskSize size_for(std::int64_t rows, const std::vector<Wanted>& members) {
    constexpr double small_part = 0.125;
    TaskSize size{rows};
    for (const Wanted& m : members) size.work += m.work;
    for (const Wanted& m : members) size.alike = size.alike && m.fewest == 1;
    for (const Wanted& m : members)
        if (m.work > small_part * size.work) size.fewest = std::max(size.fewest, m.fewest);
    return size;
}

// Tasks that leave few of many cores without work, or are too small to be worth parts.
bool enough_for_cores(double tasks, double work_of_task) {
    constexpr double least_busy = 0.8, little = 30e6;
    return tasks >= enough_tasks || work_of_task <= least_task || tasks * work_of_task <= little ||
           busy_share(tasks) >= least_busy;
}

// Into how many parts a task would have to be cut to be enough.
double parts_for_cores(double tasks, double work_of_task) {
    const double most = std::min(std::ceil(enough_tasks / tasks), std::floor(work_of_task / least_task) + 1);
    for (double parts = most; 2 * parts > most; --parts)
        if (enough_for_cores(tasks * parts, work_of_task)) return parts;
    return most;
}

// Fewer rows where they leave too few tasks.
std::int64_t rows_for_cores(const TaskSize& size, double extent) {
    const auto tasks = [&](std::int64_t rows) { return std::ceil(extent / static_cast<double>(rows)); };
    const auto work = [&](std::int64_t rows) { return size.work * static_cast<double>(rows); };
    std::int64_t rows = size.rows;
    const auto enough = [&] {
        const bool for_nothing = size.alike && tasks(rows) < enough_tasks && work(rows) > least_task;
        return !for_nothing && enough_for_cores(tasks(rows), work(rows));
    };
    // Tiles of a product load more with fewer rows: whole tasks of as many as can be.
    const bool halved = size.of_product && !enough();
    for (std::int64_t other = rows - 1; halved && 2 * other > rows && other >= size.fewest; --other)
        if (std::fmod(extent, static_cast<double>(other)) == 0 && enough_for_cores(tasks(other), work(other)))
            return other;
    while (!enough() && rows / 2 >= size.fewest) rows /= 2;
    // About as many, where the last ones of them leave fewer cores without work.
    for (std::int64_t off = 0; off < rows; ++off)
        for (const std::int64_t other : {rows - off, rows + off})
            if (other >= size.fewest && other <= size.rows && enough_for_cores(tasks(other), work(other)))
                return other;
    return rows;
}

TaskSize size_of_tasks(const Group& group, const SegmentContext& context) {
    const Nest& first = context.grouping.nests[group.values[0]];
    if (first.parallel.empty()) return {};
    std::vector<Nest> nests;
    for (const int v : group.values) nests.push_back(fully_composed_nest(context.values, v));
    if (const std::int64_t rows = rows_of_runs(nests); rows > 0) return {.rows = rows, .fewest = rows};
    bool all_maps = true, along_rows = false;
    std::vector<Wanted> members;
    std::int64_t product_rows = 0, sorted_rows = 0, walked_rows = 0, shared_rows = 1;
    double product_work = 0, deep_work = 0;
    for (std::size_t i = 0; i < nests.size(); ++i) {
        const int v = group.values[i];
        const Nest& nest = context.grouping.nests[v];
        Wanted& wanted = members.emplace_back();
        wanted.work = work_of_row(nest, context.grouping.trees[v], context);
        if (nest.combine == Combine::none) {
            if (rows_of_tiles(nests[i], context.values.shapes()) > 0) wanted.fewest = rows_side_by_side;
            continue;
        }
        all_maps = false;
        if (nests[i].reduced.size() > 1) deep_work += wanted.work;
        if (const auto product = rows_of_product(nests[i], context.values.shapes())) {
            wanted.fewest = product->best == vector_block ? fewest_in_lanes(nests[i], context.values.shapes())
                                                          : product->fewest;
            if (wanted.work <= product_work) continue;
            product_work = wanted.work;
            product_rows = product->best;
        } else if (const auto order = rows_of_order(nests[i])) {
            wanted.fewest = order->fewest;
            sorted_rows = std::max(sorted_rows, order->best);
        } else if (const auto prefix = rows_of_prefix(nests[i])) {
            wanted.fewest = prefix->fewest;
            walked_rows = std::max(walked_rows, prefix->best);
        } else if (const auto puts = rows_of_puts(nests[i])) {
            wanted.fewest = puts->fewest;
            walked_rows = std::max(walked_rows, puts->best);
        } else if (const auto shared = sharing_rows(group, context, nest, context.grouping.trees[v])) {
            wanted.fewest = shared->fewest;
            shared_rows = shared->best;
        } else if (!context.target.smallest_tasks &&
                   walks_down_columns(nests[i], context.grouping.trees[v], context.values.shapes())) {
            wanted.fewest = rows_side_by_side / 2;
            shared_rows = std::max(shared_rows, rows_side_by_side);
        } else if (context.grouping.trees[v].lanes == 1 && vector_loop(nest, context.values.shapes()) == 0) {
            wanted.fewest = fewest_in_lanes(nests[i], context.values.shapes());
            along_rows = true;
        }
    }
    const double inner = results_of_row(first);
    if (all_maps) return size_for(rows_of_maps(group, context, inner), members);
    if (product_work > deep_work) {
        TaskSize size = size_for(product_rows, members);
        size.of_product = true;
        return size;
    }
    if (sorted_rows > 0 || walked_rows > 0)
        return size_for(sorted_rows > 0 ? sorted_rows : walked_rows, members);
    const bool alone = group.values.size() == 1;
    const std::int64_t fewest = first.parallel[0].extent.range().low / fewest_vector_blocks;
    std::int64_t rows = shared_rows;
    if (along_rows) {
        // Runs of a row that are read one after another are longer where there are enough of them.
        rows = vector_block;
        while (alone && 2 * rows <= widest_vector_block && fewest >= 2 * rows) rows *= 2;
    } else if (gains_by_rows_together(group, context)) {
        rows = rows_side_by_side;
    }
    // Short runs of neighbouring results: those of several rows are one in memory.
    if (alone && !along_rows &&
        is_run_of_results(first, context.grouping.trees[group.values[0]], context.values.shapes()))
        while (static_cast<double>(2 * rows) * inner <= static_cast<double>(widest_vector_block) &&
               fewest >= 2 * rows)
            rows *= 2;
    return size_for(rows, members);
}

// What one member has of a task's rows, or of a part of them.
std::int64_t bytes_of_member(const Type& type, std::int64_t rows, std::optional<std::size_t> axis,
                             std::int64_t width) {
    std::int64_t own = rows * bytes_of(type.dtype);
    for (std::size_t d = 1; d < type.shape.size(); ++d)
        own = saturated::product(own, axis == d ? width : type.shape[d].range().high);
    return own;
}

// Of all members that stay inside.
std::int64_t bytes_inside(const Group& group, const SegmentContext& context, std::int64_t rows,
                          const std::optional<AxisCut>& cut) {
    std::int64_t bytes = 0;
    for (const int v : group.values) {
        if (context.leaves_group(v)) continue;
        std::optional<std::size_t> axis;
        if (cut) axis = static_cast<std::size_t>(cut->axis.at(v));
        bytes = saturated::sum(
            bytes, bytes_of_member(context.values.list[static_cast<std::size_t>(v)].stored_type(), rows, axis,
                                   cut ? cut->width : 0));
    }
    return bytes;
}

// Scratch for what stays inside of a part.
std::int64_t scratch_of_part(const Group& group, const SegmentContext& context, std::int64_t rows,
                             const AxisCut& cut) {
    std::int64_t bytes = 0;
    for (const int v : group.values) {
        if (context.leaves_group(v)) continue;
        const std::int64_t own =
            bytes_of_member(context.values.list[static_cast<std::size_t>(v)].stored_type(), rows,
                            static_cast<std::size_t>(cut.axis.at(v)), cut.width);
        if (own > 0 && own <= context.target.local_bytes - bytes) bytes += own;
    }
    return bytes;
}

constexpr double small_part = 0.05;  // of a task's work

// Every part of a row makes copies of what it reads in the row, but none of what the group computes: where
// that is read, what the copies would be of is computed.
bool copies_serve_parts(const Group& group, const SegmentContext& context, const RowOf& row,
                        std::int64_t rows, const AxisCut& cut, double most_work) {
    constexpr double reads = 16;
    // Picoseconds: short rows inside of a border, and the border around them.
    constexpr double of_element = 300, of_border = 100;
    const PartOfRow part{&cut, make_loop("first", cut.extent).variable};
    const std::vector<StagedCopy> made = plan_copies(
        group, context, row, rows, scratch_of_part(group, context, rows, cut), CopiedBy::parts, {}, part);
    const auto work_of = [&](const StagedCopy& copy) {
        double work =
            work_of_row(copy.nest, {}, context) * static_cast<double>(rows) * (copy.after > 0 ? reads : 1);
        if (!copy.filled) return work;
        const std::vector<Loop> row_loops(copy.nest.parallel.begin() + 1, copy.nest.parallel.end());
        return work + typical_count(row_loops) * static_cast<double>(rows) * of_element +
               typical(count_of(copy.scratch)) * of_border;
    };
    double work = 0, of_rows = 0;  // of a part, and of the copies that a whole row would have
    for (const StagedCopy& copy : plan_copies(group, context, row, rows, 0, CopiedBy::rows, {})) {
        const auto own = std::find_if(made.begin(), made.end(),
                                      [&](const StagedCopy& c) { return c.value == copy.value; });
        if (own == made.end() && copy.factor) return false;
        work += work_of(own == made.end() ? copy : *own);
        if (own != made.end()) of_rows += work_of(copy);
    }
    return work <= most_work + of_rows / static_cast<double>(cut.parts());
}

// Rows of which scratch has no room for what stays inside, as one image of a few classes may be, in parts for
// which it has.
void cut_to_fit(TaskPlan& plan, const Group& group, const SegmentContext& context, const RowOf& row,
                double work_of_row) {
    constexpr double most_parts = 256, of_byte = 60;  // picoseconds: stored and loaded
    const std::int64_t room = context.target.local_bytes, all = bytes_inside(group, context, plan.rows, {});
    if (all <= room || bytes_inside(group, context, plan.rows, plan.cut) <= room) return;
    for (double parts = std::ceil(static_cast<double>(all) / static_cast<double>(room)); parts <= most_parts;
         parts *= 2) {
        std::optional<AxisCut> cut = cut_into_parts(group, context, parts);
        if (!cut) return;
        const double work = work_of_row * static_cast<double>(plan.rows),
                     saved = of_byte * static_cast<double>(all - room);
        if (bytes_inside(group, context, plan.rows, cut) > room ||
            !copies_serve_parts(group, context, row, plan.rows, *cut,
                                (small_part * work + saved) / static_cast<double>(cut->parts())))
            continue;
        plan.cut = std::move(cut);
        return;
    }
}

// Few rows, and few elements of them, which often leave a shorter part; of lanes as many as a register has.
TaskPlan smallest_tasks(const Group& group, const SegmentContext& context, const TaskSize& size) {
    TaskPlan plan{std::min(size.rows, size.fewest), {}};
    if (size.work > 0) plan.cut = cut_into_parts(group, context);
    return plan;
}

}  // namespace

TaskPlan plan_tasks(const Group& group, const SegmentContext& context, const RowOf& row) {
    const Nest& first = context.grouping.nests[group.values[0]];
    if (first.parallel.empty()) return {};
    const TaskSize size = size_of_tasks(group, context);
    if (context.target.smallest_tasks) return smallest_tasks(group, context, size);
    // Lengths that only a call tells may be shorter than typical ones.
    constexpr double shorter = 4, bounded = 1 << 16;
    const bool known =
        static_cast<double>(group.extent.range().high) <= bounded || group.extent.is_constant();
    const double extent = std::ceil(typical(group.extent) / (known ? 1 : shorter));
    TaskPlan plan;
    for (const std::int64_t rows : {size.rows, rows_for_cores(size, extent)}) {
        plan = {rows, {}};
        const double tasks = std::ceil(extent / static_cast<double>(rows)),
                     work = size.work * static_cast<double>(rows);
        if (enough_for_cores(tasks, work)) break;
        // Fewer parts, where more of them would copy too much.
        for (double wanted = parts_for_cores(tasks, work); !plan.cut && wanted >= 2; wanted /= 2) {
            std::optional<AxisCut> cut = cut_into_parts(group, context, wanted);
            if (!cut) break;
            if (copies_serve_parts(group, context, row, rows, *cut,
                                   small_part * work / static_cast<double>(cut->parts())))
                plan.cut = std::move(cut);
        }
        if (!plan.cut) continue;
        const auto parts = static_cast<double>(plan.cut->parts());
        if (enough_for_cores(tasks * parts, work / parts)) break;
    }
    cut_to_fit(plan, group, context, row, size.work);
    return plan;
}

std::int64_t rows_of_map(const Nest& map, const ShapeOf& shape_of) {
    const double inner = std::max(results_of_row(map), 1.0);
    return std::max({std::int64_t{1}, static_cast<std::int64_t>(double{pointwise_block} / inner),
                     rows_of_tiles(map, shape_of)});
}

}  // namespace bitale
