#include "codegen/schedule/cut.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "codegen/nest/phases.h"
#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/member.h"
#include "codegen/schedule/panels.h"

namespace bitale {

std::optional<AxisCut> cut_axis(const Group& group, const Values& values, const Grouping& grouping,
                                const std::vector<int>& inside, std::int64_t bytes) {
    std::int64_t row = 0;
    for (const int v : inside) {
        const Type type = values.list[v].stored_type();
        std::int64_t count = bytes_of(type.dtype);
        for (std::size_t d = 1; d < type.shape.size(); ++d) {
            if (!type.shape[d].is_constant()) return std::nullopt;
            count *= type.shape[d].constant();
        }
        row += count;
    }
    if (row <= bytes) return std::nullopt;
    std::vector<Nest> nests;
    for (const int v : group.values) nests.push_back(grouping.nests[v]);
    for (const int v : group.values) {
        const Nest& nest = grouping.nests[v];
        if (!adds_products(nest) || nest.parallel.size() < 3) continue;
        const std::optional<ChannelAxis> channels = channel_axis(nest);
        const std::size_t axis = channels && channels->loop > 0 ? channels->loop : 1;
        if (!nest.parallel[axis].extent.is_constant()) continue;
        const AxesInStep axes = axes_in_step(group.values, nests, {v, static_cast<int>(axis)});
        if (axes.empty()) return std::nullopt;
        const std::int64_t extent = nest.parallel[axis].extent.constant();
        AxisCut cut{axes, extent, extent};
        for (const auto& [member, d] : cut.axis)
            if (!grouping.nests[member].parallel[d].extent.is(cut.extent)) return std::nullopt;
        while (cut.width > 1 && (extent % cut.width != 0 || row / extent * cut.width > bytes)) --cut.width;
        if (row / extent * cut.width > bytes) return std::nullopt;
        return cut;
    }
    return std::nullopt;
}

namespace {

// About this width, such that all parts are alike if possible: tiles of registers then come out even. 0 where
// they cannot be.
std::int64_t even_width(std::int64_t extent, std::int64_t width, std::int64_t step) {
    constexpr std::int64_t most = 3;
    for (std::int64_t off = 0; off < most * width; off += step)
        for (const std::int64_t other : {width - off, width + off})
            if (other >= step && most * other >= width && other <= most * width && 2 * other <= extent &&
                extent % other == 0)
                return other;
    return 0;
}

// Whether some schedule may put the axis into the lanes of registers.
bool may_run_in_lanes(const Nest& nest, int axis, const ShapeOf& shape_of) {
    if (is_prefix(nest) || is_order(nest.combine)) return false;
    const std::optional<ChannelAxis> channels = channel_axis(nest);
    return axis + 1 == static_cast<int>(nest.parallel.size()) || vector_loop(nest, shape_of) == axis ||
           (channels && static_cast<int>(channels->loop) == axis) ||
           (adds_products(nest) &&
            unit_stride(nest, nest.parallel[static_cast<std::size_t>(axis)].variable, shape_of));
}

// Whether the axis has the columns of a product, in lanes of registers.
bool has_columns(const Nest& nest, int axis, const ShapeOf& shape_of) {
    return adds_products(nest) && is_matrix_product(nest) &&
           lane_axis(nest, shape_of) == static_cast<std::size_t>(axis);
}

// Whether elements at different places of the axis read nothing in common, as those of different channels do
// in pooling, and those of different rows of an image, whose windows overlap, do not.
bool reads_apart(const Nest& nest, int axis) {
    bool apart = true;
    for_each_read(nest, [&](const ScalarNode& s) {
        apart = apart &&
                std::any_of(s.at.begin(), s.at.end(), [&](const Int& x) { return is_axis(nest, axis, x); });
    });
    return apart;
}

// An update in place writes the variable that others read: they have to read it in the part that is written
// in the same task.
bool parts_are_apart(const Group& group, const SegmentContext& context, const std::vector<Nest>& nests,
                     const AxesInStep& axes) {
    if (!group.commits) return true;
    std::map<int, int> written;  // buffers, and by which of their axes they are cut
    for (const int v : group.values)
        if (context.leaves_group(v))
            for (const int buffer : context.buffers_to_write(v)) written.emplace(buffer, axes.at(v));
    bool apart = true;
    for (std::size_t i = 0; i < nests.size(); ++i)
        for_each_read(nests[i], [&](const ScalarNode& s) {
            if (axes.contains(s.operand.value())) return;
            const auto to = written.find(context.buffer_to_read(s.operand.value()));
            apart = apart && (to == written.end() || is_axis(nests[i], axes.at(group.values[i]),
                                                             s.at[static_cast<std::size_t>(to->second)]));
        });
    return apart;
}

std::int64_t common_multiple(std::int64_t a, std::int64_t b) {
    std::int64_t divisor = a, rest = b;
    while (rest != 0) divisor = std::exchange(rest, divisor % rest);
    return a / divisor * b;
}

// A part has a multiple of so many elements.
std::int64_t step_of_parts(const Nest& nest, int axis, bool smallest, const Target& target,
                           const ShapeOf& shape_of) {
    constexpr std::int64_t panel = 64, few_lanes = 16;
    if (target.tasks_have_threads()) return may_run_in_lanes(nest, axis, shape_of) ? target.warp : 1;
    if (may_run_in_lanes(nest, axis, shape_of)) return smallest ? few_lanes : panel;
    const auto product = rows_of_product(nest, shape_of, static_cast<std::size_t>(axis));
    return product && !smallest ? product->fewest : 1;
}

}  // namespace

std::optional<AxisCut> cut_into_parts(const Group& group, const SegmentContext& context,
                                      std::optional<double> parts) {
    const ShapeOf shape_of = context.values.shapes();
    std::vector<Nest> nests;
    for (const int v : group.values) nests.push_back(fully_composed_nest(context.values, v));
    std::optional<AxisCut> best;
    std::int64_t most = 1;
    for (std::size_t axis = 1; axis < nests[0].parallel.size(); ++axis) {
        const Loop& l = nests[0].parallel[axis];
        if (!l.extent.is_constant() || l.extent.constant() < 2) continue;
        const AxesInStep axes = axes_in_step(group.values, nests, {group.values[0], static_cast<int>(axis)});
        if (axes.empty()) continue;
        constexpr std::int64_t lanes = 16;
        bool same = true, apart = true;
        bool is_columns = false;  // the axis has the columns of products
        std::int64_t step = 1;
        for (std::size_t i = 0; i < nests.size(); ++i) {
            const int d = axes.at(group.values[i]);
            is_columns = is_columns || has_columns(nests[i], d, shape_of);
            same = same && nests[i].parallel[static_cast<std::size_t>(d)].extent == l.extent;
            apart = apart && reads_apart(nests[i], d);
            const Int& variable = nests[i].parallel[static_cast<std::size_t>(d)].variable;
            const std::int64_t own = step_of_parts(nests[i], d, !parts, context.target, shape_of);
            const std::int64_t alike = results_alike(nests[i], variable);
            same = same && alike < l.extent.constant();
            if (same) step = common_multiple(std::max(step, own), alike);
        }
        if (!same) continue;
        const std::int64_t extent = l.extent.constant();
        const auto whole = static_cast<double>(extent);
        const double wanted = std::ceil(whole / parts.value_or(whole) / static_cast<double>(step));
        const std::int64_t width = static_cast<std::int64_t>(wanted) * step;
        std::int64_t even = even_width(extent, width, step);
        if (even == 0 && is_columns) even = even_width(extent, width, std::min(step, lanes));
        const AxisCut cut{axes, extent, even > 0 ? even : width};
        // Fewer parts that have nothing in common are as good.
        const std::int64_t worth = cut.parts() * (apart ? 2 : 1);
        if (cut.parts() < 2 || worth <= most || !parts_are_apart(group, context, nests, axes)) continue;
        best = cut;
        most = worth;
    }
    return best;
}

}  // namespace bitale
