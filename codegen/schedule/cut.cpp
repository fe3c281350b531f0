#include "codegen/schedule/cut.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "codegen/nest/product.h"
#include "codegen/schedule/member.h"

namespace bitale {

Int AxisCut::width_at(const Int& first) const {
    const bool even = extent.is_constant() && extent.constant() % width == 0;
    return even ? Int(width) : min(width, extent - first);
}

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
            if (!(grouping.nests[member].parallel[d].extent == cut.extent)) return std::nullopt;
        while (cut.width > 1 && (extent % cut.width != 0 || row / extent * cut.width > bytes)) --cut.width;
        if (row / extent * cut.width > bytes) return std::nullopt;
        return cut;
    }
    return std::nullopt;
}

namespace {

// About this width, such that all parts are alike if possible: tiles of registers then come out even.
double even_width(const Int& extent, double width, double step) {
    constexpr double most = 3;
    if (!extent.is_constant()) return width;
    const auto whole = static_cast<double>(extent.constant());
    for (double off = 0; off < most * width; off += step)
        for (const double other : {width - off, width + off})
            if (other >= step && most * other >= width && other <= most * width && 2 * other <= whole &&
                std::fmod(whole, other) == 0)
                return other;
    return width;
}

}  // namespace

std::optional<AxisCut> cut_into_parts(const Group& group, const Values& values, double parts) {
    constexpr std::int64_t panel = 64;  // lanes side by side, as products have them
    std::vector<Nest> nests;
    for (const int v : group.values) nests.push_back(fully_composed_nest(values, v));
    std::optional<AxisCut> best;
    double most = 1;
    for (std::size_t axis = 1; axis < nests[0].parallel.size(); ++axis) {
        const Loop& l = nests[0].parallel[axis];
        if (!l.variable.symbol_id()) continue;
        const AxesInStep axes = axes_in_step(group.values, nests, {group.values[0], static_cast<int>(axis)});
        if (axes.empty()) continue;
        bool same = true, lanes = false;
        for (std::size_t i = 0; i < nests.size(); ++i) {
            const int d = axes.at(group.values[i]);
            const Nest& nest = nests[i];
            same = same && nest.parallel[static_cast<std::size_t>(d)].extent == l.extent;
            lanes = lanes || d + 1 == static_cast<int>(nest.parallel.size()) ||
                    vector_loop(nest, values.shapes()) == d;
            if (const std::optional<ChannelAxis> channels = channel_axis(nest))
                lanes = lanes || static_cast<int>(channels->loop) == d;
        }
        if (!same) continue;
        const double extent = typical(l.extent), step = lanes ? panel : 1;
        const double width = even_width(l.extent, std::ceil(extent / parts / step) * step, step),
                     count = std::ceil(extent / width);
        if (count <= most) continue;
        most = count;
        best = AxisCut{axes, l.extent, static_cast<std::int64_t>(width)};
    }
    return best;
}

}  // namespace bitale
