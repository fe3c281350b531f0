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
    if (!target_.gpu || other.values.size() >= most_members) return true;
    const bool any = adds_products(full) || std::any_of(other.values.begin(), other.values.end(), [&](int v) {
                         return adds_products(grouping_.nests[static_cast<std::size_t>(v)]);
                     });
    if (!any) return true;
    double bytes = 0;
    for_each_read(full, [&](const ScalarNode& s) {
        const auto v = static_cast<std::size_t>(s.operand.value());
        if (grouping_.group_of[v] != group) return;
        double own_bytes = bytes_of(values_.list[v].node->type.dtype);
        for (const Int& n : values_.list[v].shape) own_bytes *= typical(n);
        bytes += own_bytes;
    });
    if (bytes > most_bytes) return true;
    Group both = other;
    both.values.insert(both.values.end(), own.values.begin(), own.values.end());
    both.statements += own.statements;
    return time_of(both) <= time_of(other) + time_of(own);
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
