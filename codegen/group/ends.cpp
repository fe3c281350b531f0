#include "codegen/group/ends.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "codegen/library/made.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// Of one group: the last of its members that each other group waits for, through whichever others.
class Waiting {
  public:
    Waiting(const Values& values, const Grouping& grouping, int group)
        : values_(values), grouping_(grouping), group_(group), last_(grouping.groups.size(), unknown) {}

    static constexpr int none = -1;
    // Number of the member; none where it waits for none of them.
    int last_for(int other) {
        int& known = last_[static_cast<std::size_t>(other)];
        if (known != unknown) return known;
        known = none;  // groups wait in no circle
        int last = none;
        const Group& waits = grouping_.groups[static_cast<std::size_t>(other)];
        for (const int v : waits.values)
            for_each_value_read(values_, v, [&](int read) {
                const std::vector<int>& members = grouping_.groups[static_cast<std::size_t>(group_)].values;
                if (const auto at = std::find(members.begin(), members.end(), read); at != members.end())
                    last = std::max(last, static_cast<int>(at - members.begin()));
            });
        for (const int need : waits.needs)
            if (need != group_) last = std::max(last, last_for(need));
        return last_[static_cast<std::size_t>(other)] = last;
    }

  private:
    static constexpr int unknown = -2;
    const Values& values_;
    const Grouping& grouping_;
    const int group_;
    std::vector<int> last_;
};

// Some of the ends, at about equal distances.
std::set<int> some_of(const std::vector<int>& ends, std::size_t count) {
    std::set<int> some;
    for (std::size_t k = 0; k < count; ++k) some.insert(ends[(2 * k + 1) * ends.size() / (2 * count)]);
    return some;
}

}  // namespace

std::set<int> early_ends(const Values& values, const Grouping& grouping) {
    std::set<int> ends;
    for (std::size_t g = 0; g < grouping.groups.size(); ++g) {
        const Group& group = grouping.groups[g];
        if (group.values.size() < 3 || group.by_library || group.split || group.tiled || group.once ||
            group.may_fail || group.commits)
            continue;
        Waiting waiting(values, grouping, static_cast<int>(g));
        for (std::size_t other = 0; other < grouping.groups.size(); ++other) {
            if (other == g || grouping.groups[other].level == 0) continue;
            const int last = waiting.last_for(static_cast<int>(other));
            if (last >= 0 && last + 1 < static_cast<int>(group.values.size()))
                ends.insert(group.values[static_cast<std::size_t>(last)]);
        }
    }
    return ends;
}

Grouping ended_early(const Values& values, const Graph& graph,
                     const std::function<Grouping(const std::set<int>& ends)>& grouped) {
    constexpr double least_share = 0.2, least_bytes = 8 << 20, bytes_for_launch = 1 << 20,
                     about_as_much = 0.1;
    constexpr std::size_t most_ends = 64;
    Grouping whole = grouped({});
    const double before = order_for_peak(values, graph, whole)[0];
    if (before < least_bytes / least_share) return whole;
    std::set<int> all = early_ends(values, whole);
    if (all.empty()) return whole;
    if (all.size() > most_ends) all = some_of({all.begin(), all.end()}, most_ends);
    const auto ended = [&](const std::set<int>& ends) {
        Grouping grouping = grouped(ends);
        const double peak = order_for_peak(values, graph, grouping)[0];
        return std::pair(peak, std::move(grouping));
    };
    const auto pays = [&](double peak, std::size_t ends) {
        return before - peak >= least_share * before &&
               before - peak >= bytes_for_launch * static_cast<double>(ends);
    };
    const std::vector<int> list(all.begin(), all.end());
    std::pair<double, Grouping> best = ended(all);
    const double lowest = best.first;
    if (before - lowest < least_share * before) return whole;
    for (std::size_t count = 1; count < list.size(); count *= 2) {
        std::pair<double, Grouping> fewer = ended(some_of(list, count));
        if (fewer.first <= (1 + about_as_much) * lowest && pays(fewer.first, count))
            return std::move(fewer.second);
    }
    return pays(lowest, list.size()) ? std::move(best.second) : std::move(whole);
}

}  // namespace bitale
