#include "codegen/schedule/rows_of_task.h"

#include <algorithm>

#include "codegen/nest/product.h"
#include "codegen/schedule/loops.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/order.h"
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
    std::vector<Nest> nests;
    for (const int v : group.values)
        if (is_order(context.grouping.nests[v].combine)) nests.push_back(context.grouping.nests[v]);
    if (const std::int64_t rows = rows_of_orders_on_gpu(nests, context.target); rows > 0) return rows;
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

}  // namespace

std::int64_t rows_of_task(const Group& group, const SegmentContext& context) {
    const Nest& first = context.grouping.nests[group.values[0]];
    if (first.parallel.empty()) return 1;
    if (context.target.kind == Target::Kind::cuda) return rows_on_gpu(group, context);
    std::vector<Nest> nests;
    for (const int v : group.values) nests.push_back(fully_composed_nest(context.values, v));
    const auto shape_of = [&](int v) -> const Shape& { return context.values.list[v].shape; };
    if (const std::int64_t rows = rows_of_products(nests, shape_of); rows > 0) return rows;
    if (const std::int64_t rows = rows_of_runs(nests); rows > 0) return rows;
    if (const std::int64_t rows = rows_of_orders(nests); rows > 0) return rows;
    if (const std::int64_t rows = rows_of_prefixes(nests); rows > 0) return rows;
    bool all_maps = true, along_rows = false;
    for (const int v : group.values) {
        const Nest& nest = context.grouping.nests[v];
        if (nest.combine == Combine::none) continue;
        all_maps = false;
        if (context.grouping.trees[v].lanes == 1)
            along_rows = along_rows || vector_loop(nest, context.values.shapes()) == 0;
    }
    const double inner = results_of_row(first);
    if (all_maps) return rows_of_maps(group, context, inner);
    const bool alone = group.values.size() == 1;
    const std::int64_t fewest = first.parallel[0].extent.range().low / fewest_vector_blocks;
    std::int64_t rows = 1;
    if (along_rows) {
        // Runs of a row that are read one after another are longer where there are enough of them.
        rows = vector_block;
        while (alone && 2 * rows <= widest_vector_block && fewest >= 2 * rows) rows *= 2;
        return rows;
    }
    if (gains_by_rows_together(group, context)) rows = rows_side_by_side;
    // Short runs of neighbouring results: those of several rows are one in memory.
    if (alone && is_run_of_results(first, context.grouping.trees[group.values[0]], context.values.shapes()))
        while (static_cast<double>(2 * rows) * inner <= static_cast<double>(widest_vector_block) &&
               fewest >= 2 * rows)
            rows *= 2;
    return rows;
}

}  // namespace bitale
