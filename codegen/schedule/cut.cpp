#include "codegen/schedule/cut.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/member.h"

namespace bitale {

namespace {

bool is_axis(const Nest& nest, int d, const Int& index) {
    const std::uint64_t id = nest.parallel[d].variable.symbol_id();
    return id != 0 && index.symbol_id() == id;
}

// Follows the axis from value to value along the reads inside the group.
class Follower {
  public:
    // `nests` of the group's values, in their order.
    Follower(const Group& group, const std::vector<Nest>& nests) : group_(group), nests_(nests) {}

    // Starting from an axis of one value; false if not every value walks it in step.
    bool run(int value, int axis) {
        axis_ = {{value, axis}};
        for (bool more = true; more;) {
            more = false;
            for (std::size_t i = 0; i < nests_.size(); ++i)
                for_each_read(nests_[i], [&](const ScalarNode& s) { more |= follow(i, s); });
        }
        return !failed_ && axis_.size() == group_.values.size();
    }
    const std::map<int, int>& axes() const { return axis_; }

  private:
    // True when something new is known.
    bool follow(std::size_t number, const ScalarNode& read) {
        const bool member =
            std::find(group_.values.begin(), group_.values.end(), read.operand) != group_.values.end();
        if (!member) return false;
        const int v = group_.values[number];
        const Nest& nest = nests_[number];
        const auto own = axis_.find(v), other = axis_.find(read.operand);
        if (other != axis_.end() && own == axis_.end()) {
            for (std::size_t d = 1; d < nest.parallel.size(); ++d)
                if (is_axis(nest, static_cast<int>(d), read.at[other->second]))
                    return axis_.emplace(v, static_cast<int>(d)).second;
            failed_ = true;
        } else if (own != axis_.end() && other == axis_.end()) {
            for (std::size_t d = 1; d < read.at.size(); ++d)
                if (is_axis(nest, own->second, read.at[d]))
                    return axis_.emplace(read.operand, static_cast<int>(d)).second;
            failed_ = true;
        } else if (own != axis_.end()) {
            failed_ = failed_ || !is_axis(nest, own->second, read.at[other->second]);
        }
        return false;
    }

    const Group& group_;
    const std::vector<Nest>& nests_;
    std::map<int, int> axis_;
    bool failed_ = false;
};

}  // namespace

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
        Follower follower(group, nests);
        if (!follower.run(v, static_cast<int>(axis))) return std::nullopt;
        const std::int64_t extent = nest.parallel[axis].extent.constant();
        AxisCut cut{follower.axes(), extent, extent};
        for (const auto& [member, d] : cut.axis)
            if (!(grouping.nests[member].parallel[d].extent == cut.extent)) return std::nullopt;
        while (cut.width > 1 && (extent % cut.width != 0 || row / extent * cut.width > bytes)) --cut.width;
        if (row / extent * cut.width > bytes) return std::nullopt;
        return cut;
    }
    return std::nullopt;
}

std::optional<AxisCut> cut_into_parts(const Group& group, const Values& values, double parts) {
    constexpr std::int64_t panel = 64;  // lanes side by side, as products have them
    std::vector<Nest> nests;
    for (const int v : group.values) nests.push_back(fully_composed_nest(values, v));
    std::optional<AxisCut> best;
    double most = 1;
    for (std::size_t axis = 1; axis < nests[0].parallel.size(); ++axis) {
        const Loop& l = nests[0].parallel[axis];
        if (!l.variable.symbol_id()) continue;
        Follower follower(group, nests);
        if (!follower.run(group.values[0], static_cast<int>(axis))) continue;
        bool same = true, lanes = false;
        for (std::size_t i = 0; i < nests.size(); ++i) {
            const int d = follower.axes().at(group.values[i]);
            const Nest& nest = nests[i];
            same = same && nest.parallel[static_cast<std::size_t>(d)].extent == l.extent;
            lanes = lanes || d + 1 == static_cast<int>(nest.parallel.size()) ||
                    vector_loop(nest, values.shapes()) == d;
            if (const std::optional<ChannelAxis> channels = channel_axis(nest))
                lanes = lanes || static_cast<int>(channels->loop) == d;
        }
        if (!same) continue;
        const double extent = typical(l.extent), step = lanes ? panel : 1;
        const double width = std::ceil(extent / parts / step) * step, count = std::ceil(extent / width);
        if (count <= most) continue;
        most = count;
        best = AxisCut{follower.axes(), l.extent, static_cast<std::int64_t>(width)};
    }
    return best;
}

}  // namespace bitale
