#include "codegen/group/share.h"

#include <algorithm>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/nest/walk.h"

namespace bitale {

double share_of_points(const Nest& nest, const ScalarNode& read) {
    double share = 1;
    const auto of_loop = [&](const Guard& g, const Loop& l) {
        const std::uint64_t id = l.variable.symbol_id();
        return id && depends_on(g.value, id) &&
               !(depends_on(g.value - l.variable, id) && depends_on(g.value + l.variable, id));
    };
    const auto count = [&](const Guard& g, const std::vector<Loop>& loops) {
        const auto l = std::find_if(loops.begin(), loops.end(), [&](const Loop& x) { return of_loop(g, x); });
        if (l != loops.end())
            share *= std::min(1.0, typical(g.high - g.low) / std::max(1.0, typical(l->extent)));
    };
    for (const Guard& g : read.guards) {
        if (!(g.high - g.low).is_constant() && (g.high - g.low).range().high > IntRange::highest / 2)
            continue;
        count(g, nest.parallel);
        count(g, nest.reduced);
    }
    return share;
}

}  // namespace bitale
