#include "codegen/group/peak.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "codegen/library/made.h"
#include "codegen/nest/walk.h"
#include "graph/ir/shared.h"

namespace bitale {

namespace {

// Bytes where unknown lengths are those of a small batch, and of a large one.
using Bytes = std::array<double, 2>;
constexpr Bytes unknown_lengths{128, 8192};
// A lower peak is worth launches where it is so much lower, of so many bytes.
constexpr double least_gain = 0.05, least_peak = 1 << 22;
constexpr int most_rounds = 4;
// Levels that are looked at, some tens of milliseconds.
constexpr std::size_t most_looks = std::size_t{1} << 24;

Bytes bytes_of(const Value& value) {
    constexpr std::int64_t most_known = 1 << 16;
    Bytes bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = bitale::bytes_of(value.node->type.dtype);
        for (const Int& length : value.shape) {
            const std::int64_t high = length.range().high;
            bytes[i] *= length.is_constant() || high <= most_known ? std::max(1.0, static_cast<double>(high))
                                                                   : unknown_lengths[i];
        }
    }
    return bytes;
}

class Ordering {
  public:
    Ordering(const Values& values, const Graph& graph, Grouping& grouping)
        : values_(values), graph_(graph), grouping_(grouping), groups_(grouping.groups) {}

    Bytes run() {
        if (grouping_.levels < 3) return {};
        find_buffers();
        for (Profile& live : live_) live.assign(static_cast<std::size_t>(grouping_.levels) + 1, 0);
        for (std::size_t b = 0; b < buffers_.size(); ++b) add(b, 1);
        const Bytes before = peaks();
        // Whoever saves activations in half types has batches in mind that are larger than usual.
        const bool is_asked_for = std::any_of(values_.list.begin(), values_.list.end(),
                                              [](const Value& v) { return v.node->op->is_stored; });
        if (before[0] < least_peak && !is_asked_for) return before;
        std::vector<int> as_late_as_possible;
        for (const Group& group : groups_) as_late_as_possible.push_back(group.level);
        std::vector<int> order(groups_.size());
        for (std::size_t g = 0; g < order.size(); ++g) order[g] = static_cast<int>(g);
        std::stable_sort(order.begin(), order.end(),
                         [&](int a, int b) { return group(a).level < group(b).level; });
        std::vector<int> moved;
        for (int round = 0; round < most_rounds; ++round) {
            const std::size_t until_now = moved.size();
            for (const int g : order) {
                const std::vector<int> more = may_move(g) ? move_up(g) : std::vector<int>();
                moved.insert(moved.end(), more.begin(), more.end());
            }
            if (moved.size() == until_now) break;
        }
        // Back to where they share a launch, unless the peak says no.
        const Bytes lowest = peaks();
        for (auto g = moved.rbegin(); g != moved.rend(); ++g)
            if (!group(*g).by_library)
                move_down(*g, as_late_as_possible[static_cast<std::size_t>(*g)], lowest);
        const Bytes after = peaks();
        bool gains = false;
        for (std::size_t i = 0; i < after.size(); ++i)
            gains = gains || after[i] < (1 - least_gain) * before[i];
        if (gains) return after;
        for (std::size_t g = 0; g < groups_.size(); ++g) groups_[g].level = as_late_as_possible[g];
        return before;
    }

  private:
    using Profile = std::vector<double>;  // bytes that live at each level

    struct Buffer {
        int group = -1;
        std::set<int> readers;  // other groups
        Bytes bytes{};
    };

    Group& group(int g) { return groups_[static_cast<std::size_t>(g)]; }
    const Group& group(int g) const { return groups_[static_cast<std::size_t>(g)]; }

    void find_buffers() {
        of_group_.resize(groups_.size());
        after_.resize(groups_.size());
        users_.resize(groups_.size());
        std::map<int, std::size_t> buffer_of;  // by value
        std::map<const SharedState*, std::set<int>> readers;
        const auto read = [&](int v, int by) {
            const Value& value = values_.list[static_cast<std::size_t>(v)];
            if (const SharedPtr shared = shared_of(value.node)) readers[shared.get()].insert(by);
            const int from = grouping_.group_of[static_cast<std::size_t>(v)];
            if (from < 0 || from == by || value.required || group(from).once || group(by).once) return;
            const auto [at, fresh] = buffer_of.emplace(v, buffers_.size());
            if (fresh) {
                buffers_.push_back({from, {}, bytes_of(value)});
                of_group_[static_cast<std::size_t>(from)].insert(at->second);
            }
            if (buffers_[at->second].readers.insert(by).second)
                of_group_[static_cast<std::size_t>(by)].insert(at->second);
        };
        for (std::size_t v = 0; v < values_.list.size(); ++v) {
            const int by = grouping_.group_of[v];
            if (by < 0) continue;
            for_each_value_read(values_, static_cast<int>(v), [&](int operand) { read(operand, by); });
        }
        for (const SharedUpdate& update : graph_.updates) {
            const int g = grouping_.group_of[static_cast<std::size_t>(values_.number.at(update.value.get()))];
            if (g < 0) continue;
            std::set<int>& after = after_[static_cast<std::size_t>(g)];
            after.insert(readers[update.target.get()].begin(), readers[update.target.get()].end());
            after.erase(g);
        }
        for (std::size_t g = 0; g < groups_.size(); ++g)
            if (groups_[g].may_fail && !groups_[g].once) checks_.push_back(static_cast<int>(g));
        for (std::size_t g = 0; g < groups_.size(); ++g)
            for (const int need : groups_[g].needs)
                users_[static_cast<std::size_t>(need)].push_back(static_cast<int>(g));
    }

    // Checks stay as early as they are.
    bool may_move(int g) const {
        const Group& moving = group(g);
        return moving.level > 1 && !moving.once && !moving.may_fail && !moving.values.empty();
    }

    int earliest(int g) const {
        int level = 1;
        const auto behind = [&](int other) {
            if (!group(other).once) level = std::max(level, group(other).level + 1);
        };
        for (const int need : group(g).needs) behind(need);
        if (group(g).commits) {
            for (const int reader : after_[static_cast<std::size_t>(g)]) behind(reader);
            for (const int check : checks_) behind(check);
        }
        return level;
    }

    void add(std::size_t b, double sign) {
        const Buffer& buffer = buffers_[b];
        const int first = group(buffer.group).level;
        int last = first;
        for (const int reader : buffer.readers) last = std::max(last, group(reader).level);
        for (std::size_t i = 0; i < live_.size(); ++i)
            for (int level = first; level <= last; ++level)
                live_[i][static_cast<std::size_t>(level)] += sign * buffer.bytes[i];
        looks_ += static_cast<std::size_t>(last - first) + buffer.readers.size() + 1;
    }

    void place(int g, int level) {
        for (const std::size_t b : of_group_[static_cast<std::size_t>(g)]) add(b, -1);
        group(g).level = level;
        for (const std::size_t b : of_group_[static_cast<std::size_t>(g)]) add(b, 1);
    }

    Bytes peaks() {
        Bytes r{};
        for (std::size_t i = 0; i < r.size(); ++i) r[i] = *std::max_element(live_[i].begin(), live_[i].end());
        looks_ += live_[0].size();
        return r;
    }
    Bytes areas() const {
        Bytes r{};
        for (std::size_t i = 0; i < r.size(); ++i)
            for (const double bytes : live_[i]) r[i] += bytes;
        return r;
    }

    static bool is_less(const Bytes& a, const Bytes& b) {
        return (a[0] < b[0] && a[1] <= b[1]) || (a[1] < b[1] && a[0] <= b[0]);
    }
    static bool is_more(const Bytes& a, const Bytes& b) { return a[0] > b[0] || a[1] > b[1]; }

    // Numbers, such as a rate, in kernels of their own: what needs them brings them along.
    bool is_small(int g) const {
        constexpr double most = 4096;
        double bytes = 0;
        for (const std::size_t b : of_group_[static_cast<std::size_t>(g)])
            if (buffers_[b].group == g) bytes += buffers_[b].bytes.back();
        return bytes <= most && !group(g).by_library;
    }

    void bring_along(int g, std::vector<std::pair<int, int>>& before, int depth = 0) {
        constexpr int most_deep = 8;
        for (const int need : group(g).needs) {
            if (depth == most_deep || !may_move(need) || !is_small(need)) continue;
            bring_along(need, before, depth + 1);
            if (const int to = earliest(need); to < group(need).level) {
                before.emplace_back(need, group(need).level);
                place(need, to);
            }
        }
    }

    // Whether less lives then; all that moved.
    std::vector<int> move_up(int g) {
        if (looks_ > most_looks) return {};
        const Bytes peak = peaks(), area = areas();
        std::vector<std::pair<int, int>> before;
        bring_along(g, before);
        if (const int to = earliest(g); to < group(g).level) {
            before.emplace_back(g, group(g).level);
            place(g, to);
            const Bytes now = peaks();
            if (!is_more(now, peak) && (is_less(now, peak) || is_less(areas(), area))) {
                std::vector<int> moved;
                for (const auto& [other, level] : before) moved.push_back(other);
                return moved;
            }
        }
        for (auto at = before.rbegin(); at != before.rend(); ++at) place(at->first, at->second);
        return {};
    }

    void move_down(int g, int to, const Bytes& lowest) {
        const int from = group(g).level;
        for (const int user : users_[static_cast<std::size_t>(g)])
            if (group(user).level <= to && !group(user).once) return;
        for (std::size_t other = 0; other < after_.size(); ++other)
            if (after_[other].contains(g) && groups_[other].level <= to) return;
        place(g, to);
        if (is_more(peaks(), lowest)) place(g, from);
    }

    const Values& values_;
    const Graph& graph_;
    Grouping& grouping_;
    std::vector<Group>& groups_;
    std::vector<Buffer> buffers_;
    std::vector<std::set<std::size_t>> of_group_;  // buffers that a group writes or reads
    std::vector<std::set<int>> after_;             // by group: readers of what it replaces
    std::vector<std::vector<int>> users_;
    std::vector<int> checks_;
    std::array<Profile, 2> live_;
    std::size_t looks_ = 0;
};

}  // namespace

std::array<double, 2> order_for_peak(const Values& values, const Graph& graph, Grouping& grouping) {
    return Ordering(values, graph, grouping).run();
}

}  // namespace bitale
