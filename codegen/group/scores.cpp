#include "codegen/group/scores.h"

#include <algorithm>

#include "codegen/nest/product.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/score.h"

namespace bitale {

bool FusionScores::pays(const Group& own, const Nest& full, int group) {
    constexpr double most_bytes = 8 << 20;
    constexpr std::size_t most_members = 12;  // each join schedules the whole group once more
    const Group& other = grouping_.groups[static_cast<std::size_t>(group)];
    if (target_.has_vectors())
        return bytes_between(full, group) > most_bytes || pays_in_tasks(own, full, other);
    if (!target_.gpu || other.values.size() >= most_members) return true;
    const bool any = adds_products(full) || std::any_of(other.values.begin(), other.values.end(), [&](int v) {
                         return adds_products(grouping_.nests[static_cast<std::size_t>(v)]);
                     });
    if (!any || bytes_between(full, group) > most_bytes) return true;
    return time_of(joined(other, own)) <= time_of(other) + time_of(own);
}

// Bytes of what the value reads of the group.
double FusionScores::bytes_between(const Nest& full, int group) const {
    double bytes = 0;
    for_each_read(full, [&](const ScalarNode& s) {
        const auto v = static_cast<std::size_t>(s.operand.value());
        if (grouping_.group_of[v] != group) return;
        double own_bytes = bytes_of(values_.list[v].node->type.dtype);
        for (const Int& n : values_.list[v].shape) own_bytes *= typical(n);
        bytes += own_bytes;
    });
    return bytes;
}

bool FusionScores::pays_in_tasks(const Group& own, const Nest& full, const Group& other) {
    constexpr double few_rows = 64, least_gain = 1.15;
    constexpr std::size_t most_members = 4;  // each join schedules the whole group once more
    if (full.combine == Combine::none || typical(own.extent) >= few_rows ||
        other.values.size() > most_members)
        return true;
    const bool convolves = std::any_of(other.values.begin(), other.values.end(), [&](int v) {
        return grouping_.nests[static_cast<std::size_t>(v)].reduced.size() > 1;
    });
    return !convolves || time_of(joined(other, own)) <= least_gain * (time_of(other) + time_of(own));
}

Group FusionScores::joined(const Group& group, const Group& with) {
    Group both = group;
    both.values.insert(both.values.end(), with.values.begin(), with.values.end());
    both.statements += with.statements;
    return both;
}

double FusionScores::time_of(const Group& group) {
    const auto [at, fresh] = times_.emplace(group.values, 0.0);
    if (!fresh) return at->second;
    const std::set<int> inside(group.values.begin(), group.values.end());
    const SegmentContext context{
        values_, grouping_, graph_, target_, [&](int v) { return leaves(v, inside); }, {}, {}, {}, {}, {}};
    return at->second = predicted_time(group, context, target_.fast_compile);
}

// Whether the value is needed outside of these, by way of values that are stored nowhere or not.
bool FusionScores::leaves(int value, const std::set<int>& inside) const {
    const auto of = [&](int v) -> const Value& { return values_.list[static_cast<std::size_t>(v)]; };
    if (of(value).required) return true;
    std::set<int> seen;
    for (std::vector<int> stack = of(value).users; !stack.empty();) {
        const int user = stack.back();
        stack.pop_back();
        if (inside.contains(user) || !seen.insert(user).second) continue;
        if (of(user).storage == Value::Storage::stored) return true;
        stack.insert(stack.end(), of(user).users.begin(), of(user).users.end());
    }
    return false;
}

}  // namespace bitale
