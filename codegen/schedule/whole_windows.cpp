#include "codegen/schedule/whole_windows.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codegen/nest/positions.h"
#include "codegen/nest/spans.h"
#include "codegen/nest/walk.h"

namespace bitale {

namespace {

// The taps of a window along one of its loops that are inside.
struct TapsInside {
    Int first = 0, last;
};

bool moves_with_any(const Int& x, const std::vector<Loop>& loops) {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop& l) {
        return l.variable.symbol_id() && depends_on(x, l.variable.symbol_id());
    });
}

// Nothing where the guard is not of the loop alone, or may leave no tap.
std::optional<TapsInside> taps_inside(const Nest& nest, const Loop& loop, const Guard& g) {
    const Int rest = g.value - loop.variable;
    for (const Int* x : {&rest, &g.low, &g.high})
        if (moves_with_any(*x, nest.reduced)) return {};
    const std::optional<Span> span = Spans(nest).of(rest);
    if (!span || !at_least(g.high - 1, g.low) || !at_least(g.high - 1, span->high) ||
        !at_least(span->low + loop.extent - 1, g.low))
        return {};
    return TapsInside{max(0, g.low - rest), min(loop.extent - 1, g.high - 1 - rest)};
}

}  // namespace

std::optional<WholeWindows> whole_windows(const Nest& nest, const Int& lanes) {
    if (!is_best_or_position(nest.combine)) return {};
    std::vector<std::optional<TapsInside>> inside(nest.reduced.size());
    for (const Guard& g : nest.guards) {
        if (depends_on(g, lanes.symbol_id())) return {};
        const auto loop = std::find_if(nest.reduced.begin(), nest.reduced.end(), [&](const Loop& l) {
            return l.variable.symbol_id() && depends_on(g.value, l.variable.symbol_id());
        });
        if (loop == nest.reduced.end()) return {};
        std::optional<TapsInside>& taps = inside[static_cast<std::size_t>(loop - nest.reduced.begin())];
        if (taps) return {};  // each of two guards might leave other taps
        taps = taps_inside(nest, *loop, g);
        if (!taps) return {};
    }
    WholeWindows r{nest, 0};
    Substitution taps;
    for (std::size_t i = 0; i < inside.size(); ++i) {
        const Loop& l = nest.reduced[i];
        r.first = r.first * l.extent;
        if (!inside[i]) continue;
        r.first = r.first + inside[i]->first;
        taps[l.variable.symbol_id()] = min(inside[i]->first + l.variable, inside[i]->last);
    }
    r.nest.guards.clear();
    r.nest.body = substitute(nest.body, taps);
    return r;
}

}  // namespace bitale
