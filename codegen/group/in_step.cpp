#include "codegen/group/in_step.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "codegen/nest/prefix.h"
#include "codegen/nest/puts.h"
#include "codegen/nest/walk.h"

namespace bitale {

bool is_axis(const Nest& nest, int d, const Int& index) {
    const std::uint64_t id = nest.parallel[static_cast<std::size_t>(d)].variable.symbol_id();
    return id != 0 && index.symbol_id() == id;
}

namespace {

// Each result along the axis takes all others into account, or all points look for theirs: a prefix, a sort,
// sums at places that a list tells.
bool is_whole_along(const Nest& nest, int axis) {
    const std::optional<PrefixForm> prefix = prefix_form(nest);
    if (prefix && static_cast<int>(prefix->place) == axis) return true;
    const std::optional<PutForm> puts = put_form(nest);
    if (puts && static_cast<int>(puts->place) == axis) return true;
    return is_order(nest.combine) && axis + 1 == static_cast<int>(nest.parallel.size());
}

// Follows the axis from value to value.
class Follower {
  public:
    Follower(const std::vector<int>& values, const std::vector<Nest>& nests)
        : values_(values), nests_(nests) {}

    AxesInStep run(const std::pair<int, int>& begin) {
        axes_ = {begin};
        for (bool more = true; more && !failed_;) {
            more = false;
            for (std::size_t i = 0; i < nests_.size(); ++i)
                for_each_read(nests_[i], [&](const ScalarNode& s) { more |= follow(i, s); });
        }
        for (std::size_t i = 0; i < nests_.size() && !failed_; ++i) {
            const auto axis = axes_.find(values_[i]);
            failed_ = axis == axes_.end() || is_whole_along(nests_[i], axis->second);
        }
        return failed_ ? AxesInStep{} : axes_;
    }

  private:
    // True when something new is known.
    bool follow(std::size_t number, const ScalarNode& read) {
        if (std::find(values_.begin(), values_.end(), read.operand.value()) == values_.end()) return false;
        const int v = values_[number];
        const Nest& nest = nests_[number];
        const auto own = axes_.find(v), other = axes_.find(read.operand.value());
        if (other != axes_.end() && own == axes_.end()) {
            for (std::size_t d = 1; d < nest.parallel.size(); ++d)
                if (is_axis(nest, static_cast<int>(d), read.at[static_cast<std::size_t>(other->second)]))
                    return axes_.emplace(v, static_cast<int>(d)).second;
            failed_ = true;
        } else if (own != axes_.end() && other == axes_.end()) {
            for (std::size_t d = 1; d < read.at.size(); ++d)
                if (is_axis(nest, own->second, read.at[d]))
                    return axes_.emplace(read.operand.value(), static_cast<int>(d)).second;
            failed_ = true;
        } else if (own != axes_.end()) {
            failed_ =
                failed_ || !is_axis(nest, own->second, read.at[static_cast<std::size_t>(other->second)]);
        }
        return false;
    }

    const std::vector<int>& values_;
    const std::vector<Nest>& nests_;
    AxesInStep axes_;
    bool failed_ = false;
};

}  // namespace

AxesInStep axes_in_step(const std::vector<int>& values, const std::vector<Nest>& nests,
                        const std::pair<int, int>& begin) {
    return Follower(values, nests).run(begin);
}

}  // namespace bitale
