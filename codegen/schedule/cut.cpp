#include "codegen/schedule/cut.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "codegen/nest/prefix.h"
#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool is_axis(const Nest& nest, int d, const Int& index) {
    const std::uint64_t id = nest.parallel[d].variable.symbol_id();
    return id != 0 && index.symbol_id() == id;
}

// Follows the axis from value to value along the reads inside the group.
class Follower {
  public:
    Follower(const Group& group, const Grouping& grouping) : group_(group), grouping_(grouping) {}

    // Starting from an axis of one value; false if not every value walks it in step.
    bool run(int value, int axis) {
        axis_ = {{value, axis}};
        for (bool more = true; more;) {
            more = false;
            for (const int v : group_.values)
                for_each_read(grouping_.nests[v], [&](const ScalarNode& s) { more |= follow(v, s); });
        }
        return !failed_ && axis_.size() == group_.values.size();
    }
    const std::map<int, int>& axes() const { return axis_; }

  private:
    // True when something new is known.
    bool follow(int v, const ScalarNode& read) {
        const bool member =
            std::find(group_.values.begin(), group_.values.end(), read.operand) != group_.values.end();
        if (!member) return false;
        const Nest& nest = grouping_.nests[v];
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
    const Grouping& grouping_;
    std::map<int, int> axis_;
    bool failed_ = false;
};

// Each result along the axis takes all others into account: a prefix, or a sort.
bool is_whole_along(const Nest& nest, int axis) {
    const std::optional<PrefixForm> prefix = prefix_form(nest);
    if (prefix && static_cast<int>(prefix->place) == axis) return true;
    return is_order(nest.combine) && axis + 1 == static_cast<int>(nest.parallel.size());
}

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
    for (const int v : group.values) {
        const Nest& nest = grouping.nests[v];
        if (!adds_products(nest) || nest.parallel.size() < 3) continue;
        const std::optional<ChannelAxis> channels = channel_axis(nest);
        const std::size_t axis = channels && channels->loop > 0 ? channels->loop : 1;
        if (!nest.parallel[axis].extent.is_constant()) continue;
        Follower follower(group, grouping);
        if (!follower.run(v, static_cast<int>(axis))) return std::nullopt;
        AxisCut cut{follower.axes(), nest.parallel[axis].extent.constant(), 0};
        for (const auto& [member, d] : cut.axis)
            if (!grouping.nests[member].parallel[d].extent.is(cut.extent) ||
                is_whole_along(grouping.nests[member], d))
                return std::nullopt;
        cut.width = cut.extent;
        while (cut.width > 1 && (cut.extent % cut.width != 0 || row / cut.extent * cut.width > bytes))
            --cut.width;
        if (row / cut.extent * cut.width > bytes) return std::nullopt;
        return cut;
    }
    return std::nullopt;
}

}  // namespace bitale
