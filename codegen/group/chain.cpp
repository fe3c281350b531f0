#include "codegen/group/chain.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "codegen/nest/tree.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

bool is_reduced_later(const Values& values, const Value& value) {
    return !value.nest.parallel.empty() && !value.users.empty() &&
           std::all_of(value.users.begin(), value.users.end(), [&](int user) {
               const Value& u = values.list[static_cast<std::size_t>(user)];
               return is_reduction(u.nest) && !u.by_library &&
                      typical_count(u.nest.parallel) < typical_count(value.nest.parallel);
           });
}

}  // namespace

bool is_least_of_chain(const Values& values, int number, const std::function<bool(int)>& is_kept) {
    const Value& least = values.list[static_cast<std::size_t>(number)];
    if (!is_reduced_later(values, least)) return false;
    std::vector<int> stack{number}, seen;
    double results = INFINITY;
    for (const int user : least.users)
        results = std::min(results, count_of(values.list[static_cast<std::size_t>(user)]));
    int reductions = 0;
    double read = 0;
    while (!stack.empty() && seen.size() < longest_chain) {
        const int v = stack.back();
        stack.pop_back();
        if (std::find(seen.begin(), seen.end(), v) != seen.end()) continue;
        seen.push_back(v);
        const Value& value = values.list[static_cast<std::size_t>(v)];
        const bool reduction =
            v != number && !value.nest.parallel.empty() && (is_reduction(value.nest) || value.by_library);
        const bool array = reduction || (v != number && is_kept(v));
        if (array && (count_of(value) > results || 2 * count_of(value) >= count_of(least))) ++reductions;
        if (array || value.storage == Value::Storage::leaf)
            read += count_of(value);
        else if (value.nest.body && !is_reduction(value.nest))
            for_each_read(value.nest, [&](const ScalarNode& s) { stack.push_back(s.operand.value()); });
    }
    return reductions >= 2 && (!stack.empty() || count_of(least) <= read);
}

}  // namespace bitale
