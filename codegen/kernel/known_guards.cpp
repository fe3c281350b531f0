#include "codegen/kernel/known_guards.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "codegen/nest/walk.h"

namespace bitale {

bool always_holds(const Guard& g) {
    return (g.value - g.low).non_negative() && (g.high - 1 - g.value).non_negative();
}

bool never_holds(const Guard& g) {
    return (g.low - 1 - g.value).non_negative() || (g.value - g.high).non_negative();
}

void KnownGuards::assume(const Guard& guard, GuardSide side) {
    const Int low = side == GuardSide::within  ? guard.low
                    : side == GuardSide::above ? guard.high
                                               : Int(IntRange::lowest),
              high = side == GuardSide::within  ? guard.high
                     : side == GuardSide::below ? guard.low
                                                : Int(IntRange::highest);
    for (Guard& known : intervals_) {
        const Int apart = guard.value - known.value;
        if (!apart.is_constant()) continue;
        if (!low.is(IntRange::lowest))
            known.low = known.low.is(IntRange::lowest) ? low - apart : max(known.low, low - apart);
        if (!high.is(IntRange::highest))
            known.high = known.high.is(IntRange::highest) ? high - apart : min(known.high, high - apart);
        return;
    }
    intervals_.push_back({guard.value, low, high});
}

std::vector<Guard> KnownGuards::conditions() const {
    std::vector<Guard> all = intervals_;
    for (Guard& g : all)
        if (g.high.is(IntRange::highest)) g.high = IntRange::highest + 1;  // printed nowhere
    return all;
}

std::optional<bool> KnownGuards::holds(const Guard& guard) const {
    if (always_holds(guard)) return true;
    if (never_holds(guard) || std::find(failed_.begin(), failed_.end(), guard) != failed_.end()) return false;
    for (const Guard& known : intervals_) {
        const Int apart = guard.value - known.value;
        if (!apart.is_constant()) continue;
        // The guard's value is in [low, high).
        const bool has_low = !known.low.is(IntRange::lowest), has_high = !known.high.is(IntRange::highest);
        const Int low = known.low + apart, high = known.high + apart;
        if ((has_high && (guard.low - high).non_negative()) || (has_low && (low - guard.high).non_negative()))
            return false;
        const bool from =
            has_low ? (low - guard.low).non_negative() : (guard.value - guard.low).non_negative();
        const bool to =
            has_high ? (guard.high - high).non_negative() : (guard.high - 1 - guard.value).non_negative();
        if (from && to) return true;
    }
    return {};
}

Scalar KnownGuards::settled(const Scalar& s) const {
    if (!s) return s;
    return rebuild(s, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
        if (part->guards.empty()) return part;
        std::vector<Guard> open;
        for (const Guard& g : part->guards) {
            const std::optional<bool> known = holds(g);
            if (known && !*known) return part->otherwise;
            if (!known) open.push_back(g);
        }
        part->guards = std::move(open);
        if (!part->guards.empty()) return part;
        if (part->kind == ScalarNode::Kind::select) return part->arguments[0];
        part->otherwise = nullptr;
        return part;
    });
}

}  // namespace bitale
