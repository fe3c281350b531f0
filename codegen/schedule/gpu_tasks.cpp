#include "codegen/schedule/gpu_tasks.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/schedule/cut.h"
#include "codegen/schedule/gpu_product.h"
#include "codegen/schedule/order.h"

namespace bitale::gpu {

namespace {

// As many rows as occupy so many threads.
std::int64_t rows_of_busy_block(const Group& group, const SegmentContext& context) {
    constexpr double busy_threads = 128;
    double row = 1, product = 0;
    for (const int v : group.values) {
        const Nest& nest = context.grouping.nests[v];
        const double points =
            typical_count({nest.parallel.begin() + 1, nest.parallel.end()}) * context.grouping.trees[v].lanes;
        row = std::max(row, points);
        if (adds_products(nest)) product = product > 0 ? std::min(product, points) : points;
    }
    if (product > 0) row = product;
    std::int64_t rows = 1;
    while (static_cast<double>(2 * rows) * row <= busy_threads) rows *= 2;
    return rows;
}

// A reduction along a row occupies a warp of a block, however long the row is. More rows than keep the other
// values' threads busy occupy more warps, as far as what stays inside the group fits into shared memory.
std::int64_t rows_of_reductions(const Group& group, const SegmentContext& context) {
    constexpr std::int64_t most_rows = 8, most_bytes = 40 << 10;
    std::int64_t row = 0;
    bool reduces = false;
    for (const int v : group.values) {
        const Nest& nest = context.grouping.nests[v];
        reduces = reduces || (context.grouping.trees[v].lanes > 1 && nest.parallel.size() == 1);
        if (context.leaves_group(v)) continue;
        const Type type = context.values.list[v].stored_type();
        if (type.shape.empty()) continue;
        const Int count = count_of(Shape(type.shape.begin() + 1, type.shape.end()));
        if (!count.is_constant()) return 1;
        row += count.constant() * bytes_of(type.dtype);
    }
    if (!reduces) return 1;
    std::int64_t rows = most_rows;
    while (rows > 1 && rows * row > most_bytes) rows /= 2;
    return rows;
}

// Where whole rows of what stays inside the group are much for the shared memory of a block.
std::optional<AxisCut> cut_for_memory(const Group& group, const SegmentContext& context) {
    constexpr std::int64_t most_bytes = 28 << 10;
    std::vector<int> inside;
    for (const int v : group.values)
        if (!context.leaves_group(v)) inside.push_back(v);
    return cut_axis(group, context.values, context.grouping, inside, most_bytes);
}

// Whether the indices of a part can be proved to stay in it: the number of a thread is divided by lengths
// that are known, and by no shorter last part.
bool stays_in_parts(const AxisCut& cut, const Grouping& grouping) {
    return std::all_of(cut.axis.begin(), cut.axis.end(), [&](const auto& of) {
        const std::vector<Loop>& loops = grouping.nests[of.first].parallel;
        const bool known =
            loops.size() <= 2 ||
            std::all_of(loops.begin() + 1, loops.end(), [](const Loop& l) { return l.extent.is_constant(); });
        return known && (cut.extent % cut.width == 0 || of.second == 1);
    });
}

std::vector<TaskPlan> task_plans(const Group& group, const SegmentContext& context) {
    if (context.grouping.nests[group.values[0]].parallel.empty()) return {{}};
    std::vector<Nest> orders;
    for (const int v : group.values)
        if (is_order(context.grouping.nests[v].combine)) orders.push_back(context.grouping.nests[v]);
    if (const std::int64_t rows = rows_of_orders_on_gpu(orders, context.target); rows > 0)
        return {{rows, {}}};
    const std::int64_t most = rows_of_busy_block(group, context);
    if (most == 1)
        if (std::optional<AxisCut> cut = cut_for_memory(group, context)) return {{1, std::move(cut)}};
    std::vector<TaskPlan> plans{{most, {}}};
    for (std::int64_t n = 2 * most; n <= rows_of_reductions(group, context); n *= 2) plans.push_back({n, {}});
    const std::int64_t rows = std::max<std::int64_t>(1, group.extent.range().high);
    for (std::int64_t n = most / 2; n >= 1; n /= 2)
        if (n < rows) plans.push_back({n, {}});
    constexpr double most_parts = 64;
    std::int64_t before = 1;
    for (double parts = 2; parts <= most_parts; parts *= 2) {
        std::optional<AxisCut> cut = cut_into_parts(group, context, parts);
        if (!cut || cut->parts() <= before || !stays_in_parts(*cut, context.grouping)) continue;
        before = cut->parts();
        plans.push_back({1, std::move(cut)});
    }
    return plans;
}

}  // namespace

TaskPlan fastest_plan(const Group& group, const SegmentContext& context,
                      const std::function<double(const TaskPlan&)>& predicted) {
    std::vector<TaskPlan> plans = task_plans(group, context);
    if (!context.target.gpu || plans.size() == 1) return std::move(plans[0]);
    std::size_t best = 0;
    double least = predicted(plans[0]);
    for (std::size_t i = 1; i < plans.size(); ++i)
        if (const double time = predicted(plans[i]); time < least) best = i, least = time;
    return std::move(plans[best]);
}

std::int64_t bytes_of_pieces(const Group& group, const SegmentContext& context, std::int64_t rows) {
    for (const int v : group.values) {
        Nest nest = context.grouping.nests[v];
        if (nest.parallel.empty()) continue;
        nest.parallel[0].extent = min(nest.parallel[0].extent, rows);
        const ReductionTree& tree = context.grouping.trees[v];
        if (is_thin_product(nest, tree) || is_thin_sum(nest, tree)) return product_bytes;
    }
    return 0;
}

}  // namespace bitale::gpu
