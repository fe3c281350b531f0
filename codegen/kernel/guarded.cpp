#include "codegen/kernel/guarded.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

// Compilers cut loops of a known length themselves where these are short.
constexpr std::int64_t shortest = 512;
constexpr std::size_t most_statements = 64, most_guards = 16;

using Guards = std::vector<Guard>;

bool contains(const Guards& guards, const Guard& g) {
    return std::find(guards.begin(), guards.end(), g) != guards.end();
}

Int clamp(const Int& x, const Int& low, const Int& high) { return min(max(x, low), high); }

bool always_holds(const Guard& g) {
    return (g.value - g.low).non_negative() && (g.high - 1 - g.value).non_negative();
}

bool never_holds(const Guard& g) {
    return (g.low - 1 - g.value).non_negative() || (g.value - g.high).non_negative();
}

// Where they hold; without those that hold anyway, or nowhere.
Scalar without(const Scalar& s, const Guards& guards) {
    if (!s) return s;
    return rebuild(s, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
        std::erase_if(part->guards, [&](const Guard& g) { return contains(guards, g) || always_holds(g); });
        if (part->otherwise && std::any_of(part->guards.begin(), part->guards.end(), never_holds))
            return part->otherwise;
        if (!part->guards.empty()) return part;
        if (part->kind == ScalarNode::Kind::select) return part->arguments[0];
        if (part->kind == ScalarNode::Kind::read) part->otherwise = nullptr;
        return part;
    });
}

Stmts without(Stmts body, const Guards& guards) {
    for (Stmt& s : body) s.value = without(s.value, guards);
    return body;
}

// Holds where one of the guards does not.
Guard some_fails(const Guards& guards) {
    Int least = IntRange::highest;
    for (const Guard& g : guards) least = min(least, min(g.value - g.low, g.high - 1 - g.value));
    return {least, IntRange::lowest, 0};
}

class Cutter {
  public:
    Stmts operator()(Stmts body) const {
        Stmts r;
        for (Stmt& s : body) {
            // What is known of a point may be known once lanes share an element.
            if (s.kind == Stmt::Kind::loop && s.binding == Binding::simd)
                s.body = without(std::move(s.body), {});
            if (suits(s)) {
                append(r, cut(std::move(s)));
                continue;
            }
            s.body = (*this)(std::move(s.body));
            r.push_back(std::move(s));
        }
        return r;
    }

  private:
    static bool suits(const Stmt& s) {
        if (s.kind != Stmt::Kind::loop || s.binding != Binding::simd || s.step != 1 || !s.high.is(0) ||
            !s.variable.symbol_id() || s.body.size() > most_statements)
            return false;
        if (s.begin.is_constant() && s.end.is_constant() && s.end.constant() - s.begin.constant() < shortest)
            return false;
        return std::all_of(s.body.begin(), s.body.end(), [](const Stmt& one) {
            return one.kind == Stmt::Kind::set || one.kind == Stmt::Kind::declare ||
                   one.kind == Stmt::Kind::comment || (one.kind == Stmt::Kind::accumulate && !one.position);
        });
    }

    static Guards guards_of(const Stmts& body) {
        Guards all;
        for (const Stmt& s : body) {
            if (!s.value) continue;
            for_each_part(s.value, [&](const ScalarNode& part) {
                for (const Guard& g : part.guards)
                    if (!contains(all, g)) all.push_back(g);
            });
        }
        return all;
    }

    static Stmts cut(Stmt s) {
        const std::uint64_t id = s.variable.symbol_id();
        Guards rows, points;
        Int first = s.begin, last = s.end;
        for (const Guard& g : guards_of(s.body)) {
            if (!depends_on(g, id)) {
                rows.push_back(g);
                continue;
            }
            const Int rest = g.value - s.variable;
            if (depends_on(rest, id) || depends_on(g.low, id) || depends_on(g.high, id)) continue;
            points.push_back(g);
            first = max(first, g.low - rest);
            last = min(last, g.high - rest);
        }
        if (rows.size() + points.size() > most_guards || (rows.empty() && points.empty()))
            return one(std::move(s));
        Stmt inside = s;
        inside.body = without(inside.body, rows);
        Stmts parts;
        if (points.empty()) {
            parts = one(std::move(inside));
        } else {
            first = clamp(first, s.begin, s.end);
            last = max(clamp(last, s.begin, s.end), first);
            parts = {part(inside, s.begin, first, {}), part(inside, first, last, points),
                     part(inside, last, s.end, {})};
        }
        if (rows.empty()) return parts;
        Stmt outside = part(s, s.begin, s.end, {});
        Stmts r;
        r.push_back(when(rows, std::move(parts)));
        r.push_back(when({some_fails(rows)}, one(std::move(outside))));
        return r;
    }

    static Stmts one(Stmt s) {
        Stmts r;
        r.push_back(std::move(s));
        return r;
    }

    // The iterations from `begin` below `end`, where the guards hold.
    static Stmt part(const Stmt& s, const Int& begin, const Int& end, const Guards& guards) {
        const Int variable = Int::symbol("part", s.variable.range());
        return loop(variable, begin, end, s.binding,
                    substitute(without(s.body, guards), {{s.variable.symbol_id(), variable}}));
    }
};

}  // namespace

void cut_at_guards(KernelIR& kernel) {
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments) segment.body = Cutter()(std::move(segment.body));
}

}  // namespace bitale
