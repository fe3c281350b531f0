#include "codegen/schedule/rows_of_task.h"

#include <algorithm>
#include <cmath>

#include "codegen/nest/compose.h"
#include "codegen/nest/product.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/panels.h"
#include "codegen/schedule/pointwise.h"
#include "codegen/schedule/prefix.h"
#include "codegen/schedule/runs.h"
#include "codegen/schedule/short_rows.h"

namespace bitale {

namespace {

constexpr std::int64_t vector_block = 64, widest_vector_block = 256, fewest_vector_blocks = 4;

double results_of_row(const Nest& nest) {
    return typical_count({nest.parallel.begin() + 1, nest.parallel.end()});
}

std::int64_t rows_on_gpu(const Group& group, const SegmentContext& context) {
    constexpr double busy_threads = 128;
    double row = 1, product = 0;
    for (const int v : group.values) {
        const Nest& nest = context.grouping.nests[v];
        const double points = results_of_row(nest) * context.grouping.trees[v].lanes;
        row = std::max(row, points);
        if (adds_products(nest)) product = product > 0 ? std::min(product, points) : points;
    }
    if (product > 0) row = product;
    std::int64_t rows = 1;
    while (static_cast<double>(2 * rows) * row <= busy_threads) rows *= 2;
    return rows;
}

// Reductions of short rows, one result a row: of several rows they meet as vectors (short_rows.h), while what
// the other members have of these rows stays in the nearest cache.
bool gains_by_rows_together(const Group& group, const SegmentContext& context) {
    constexpr double most_bytes = 16 << 10;
    constexpr std::int64_t fewest_tasks = 4;
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

// A reduction whose results run in lanes, side by side as what it reads is.
bool is_run_of_results(const Nest& nest, const ReductionTree& tree, const ShapeOf& shape_of) {
    const int last = static_cast<int>(nest.parallel.size()) - 1;
    return last > 0 && !adds_products(nest) && nest.lets.empty() && nest.guards.empty() && tree.lanes == 1 &&
           vector_loop(nest, shape_of) == last;
}

std::int64_t rows_of_maps(const Group& group, const SegmentContext& context, double inner) {
    std::int64_t rows =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(pointwise_block) / inner));
    for (const int v : group.values)
        rows = std::max(rows, rows_of_tiles(fully_composed_nest(context.values, v), context.values.shapes()));
    return rows;
}

// What a member of a group makes of the rows of a task.
struct Wanted {
    double work = 0;          // of a row, in picoseconds of one core
    std::int64_t fewest = 1;  // with less its lanes, or what they have loaded, stay unused
};

// As if every operation ran in lanes: to compare members with each other, and with what is worth a task.
double work_of_row(const Nest& nest, const Target& target) {
    constexpr double picoseconds = 160, of_product = 2, of_access = 2;
    const double lanes = std::max(1, target.vector_bytes / 4);
    const double operations = adds_products(nest) ? of_product : of_access + cost_of(nest);
    return operations * results_of_row(nest) * typical_count(nest.reduced) / lanes * picoseconds;
}

// The share of 16 cores that work while tasks of equal length are done.
double busy_share(double tasks) {
    constexpr double cores = 16;
    return tasks / (std::ceil(tasks / cores) * cores);
}

// Fewer rows where they leave too few tasks for many cores, down to what the members need that do most of
// the work, and to tasks that are worth being handed out.
std::int64_t for_cores(std::int64_t rows, const std::vector<Wanted>& members, double extent) {
    constexpr double enough_tasks = 64, least_task = 5e6, least_busy = 0.8, small_part = 0.125;
    double work = 0;
    for (const Wanted& m : members) work += m.work;
    std::int64_t fewest = 1;
    for (const Wanted& m : members)
        if (m.work > small_part * work) fewest = std::max(fewest, m.fewest);
    const auto tasks = [&](std::int64_t n) { return std::ceil(extent / static_cast<double>(n)); };
    while (tasks(rows) < enough_tasks && rows / 2 >= fewest && static_cast<double>(rows) * work > least_task)
        rows /= 2;
    if (static_cast<double>(rows) * work <= least_task || busy_share(tasks(rows)) >= least_busy) return rows;
    for (std::int64_t other = rows; other >= fewest && 2 * other > rows; --other)
        if (busy_share(tasks(other)) >= least_busy) return other;
    return rows;
}

}  // namespace

std::int64_t rows_of_task(const Group& group, const SegmentContext& context) {
    const Nest& first = context.grouping.nests[group.values[0]];
    if (first.parallel.empty()) return 1;
    if (context.target.kind == Target::Kind::cuda) return rows_on_gpu(group, context);
    std::vector<Nest> nests;
    for (const int v : group.values) nests.push_back(fully_composed_nest(context.values, v));
    if (const std::int64_t rows = rows_of_runs(nests); rows > 0) return rows;
    if (const std::int64_t rows = rows_of_prefixes(nests); rows > 0) return rows;
    bool all_maps = true, along_rows = false;
    std::vector<Wanted> members;
    std::int64_t product_rows = 0;
    double product_work = 0, deep_work = 0;
    for (std::size_t i = 0; i < nests.size(); ++i) {
        const int v = group.values[i];
        const Nest& nest = context.grouping.nests[v];
        Wanted& wanted = members.emplace_back();
        wanted.work = work_of_row(nest, context.target);
        if (nest.combine == Combine::none) {
            if (rows_of_tiles(nests[i], context.values.shapes()) > 0) wanted.fewest = rows_side_by_side;
            continue;
        }
        all_maps = false;
        if (nests[i].reduced.size() > 1) deep_work += wanted.work;
        if (const auto product = rows_of_product(nests[i], context.values.shapes())) {
            wanted.fewest = product->fewest;
            if (wanted.work <= product_work) continue;
            product_work = wanted.work;
            product_rows = product->best;
        } else if (context.grouping.trees[v].lanes == 1 && vector_loop(nest, context.values.shapes()) == 0) {
            wanted.fewest = rows_side_by_side;
            along_rows = true;
        }
    }
    const double inner = results_of_row(first);
    if (all_maps) return for_cores(rows_of_maps(group, context, inner), members, typical(group.extent));
    if (product_work > deep_work) return for_cores(product_rows, members, typical(group.extent));
    const bool alone = group.values.size() == 1;
    const std::int64_t fewest = first.parallel[0].extent.range().low / fewest_vector_blocks;
    std::int64_t rows = 1;
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
    return for_cores(rows, members, typical(group.extent));
}

}  // namespace bitale
