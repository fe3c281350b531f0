#include "codegen/kernel/guarded.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

// Compilers cut loops of a known length themselves where these are short.
constexpr std::int64_t shortest = 512;
constexpr std::size_t most_statements = 64, most_guards = 6, most_sets = 2;
constexpr int most_choices = 8;
constexpr std::int64_t most_period = 8;

using Guards = std::vector<Guard>;

bool contains(const Guards& guards, const Guard& g) {
    return std::find(guards.begin(), guards.end(), g) != guards.end();
}

// Minima and maxima inside, each of which is printed with both operands twice.
int choices_in(const Int& x) {
    int n = 0;
    for (const Int::Term& t : x.terms())
        for (const AtomPtr& a : t.atoms) {
            if (a->kind == Atom::Kind::symbol) continue;
            n += choices_in(a->a) + choices_in(a->b) + (a->kind == Atom::Kind::floordiv ? 0 : 1);
        }
    return n;
}

bool always_holds(const Guard& g) {
    return (g.value - g.low).non_negative() && (g.high - 1 - g.value).non_negative();
}

bool never_holds(const Guard& g) {
    return (g.low - 1 - g.value).non_negative() || (g.value - g.high).non_negative();
}

// The part without some of its guards, which hold.
Scalar relieved(const std::shared_ptr<ScalarNode>& part, const std::function<bool(const Guard&)>& holds) {
    std::erase_if(part->guards, holds);
    if (!part->guards.empty()) return part;
    if (part->kind == ScalarNode::Kind::select) return part->arguments[0];
    if (part->kind == ScalarNode::Kind::read) part->otherwise = nullptr;
    return part;
}

// Where they hold; without those that hold anyway, or nowhere.
Scalar without(const Scalar& s, const Guards& guards) {
    if (!s) return s;
    return rebuild(s, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
        const bool never =
            part->otherwise && std::any_of(part->guards.begin(), part->guards.end(), never_holds);
        if (never) return part->otherwise;
        return relieved(part, [&](const Guard& g) { return contains(guards, g) || always_holds(g); });
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

// The least common multiple of what quotients of the variable are taken by: 1 where there are none.
class Period {
  public:
    explicit Period(std::uint64_t id) : id_(id) {}

    std::int64_t of(const Stmts& body) {
        for (const Stmt& s : body) {
            for (const Int& x : s.at) look(x);
            if (!s.value) continue;
            for_each_part(s.value, [&](const ScalarNode& part) {
                for (const Int& x : part.at) look(x);
                for (const Guard& g : part.guards)
                    for (const Int* x : {&g.value, &g.low, &g.high}) look(*x);
                if (part.kind == ScalarNode::Kind::index) look(part.index);
            });
        }
        return period_;
    }

  private:
    void look(const Int& x) {
        for (const Int::Term& t : x.terms())
            for (const AtomPtr& a : t.atoms) {
                if (a->kind == Atom::Kind::symbol || !(depends_on(a->a, id_) || depends_on(a->b, id_)))
                    continue;
                const bool by_number =
                    a->kind == Atom::Kind::floordiv && a->b.is_constant() && a->b.constant() > 0;
                if (by_number && period_ <= most_period) period_ = std::lcm(period_, a->b.constant());
                look(a->a);
                look(a->b);
            }
    }

    const std::uint64_t id_;
    std::int64_t period_ = 1;
};

class GuardCutter {
  public:
    // `parts`: what the tasks have of buffers (Segment).
    GuardCutter(KernelIR& kernel, const std::map<int, std::vector<Part>>& parts)
        : kernel_(kernel), parts_(parts) {}

    Stmts operator()(Stmts body) {
        Stmts r;
        for (Stmt& s : body) {
            // What is known of a point may be known once lanes share an element.
            if (s.kind == Stmt::Kind::loop && s.binding == Binding::simd)
                s.body = without(std::move(s.body), {});
            if (suits(s)) {
                append(r, cut(s));
                continue;
            }
            s.body = (*this)(std::move(s.body));
            r.push_back(std::move(s));
        }
        return r;
    }

  private:
    bool suits(const Stmt& s) const {
        if (s.kind != Stmt::Kind::loop || s.binding != Binding::simd || s.step != 1 || !s.high.is(0) ||
            !s.variable.symbol_id() || s.body.size() > most_statements)
            return false;
        if (s.begin.is_constant() && s.end.is_constant() && s.end.constant() - s.begin.constant() < shortest)
            return false;
        return std::all_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            if (one.kind == Stmt::Kind::comment || one.kind == Stmt::Kind::declare) return true;
            return (one.kind == Stmt::Kind::set || (one.kind == Stmt::Kind::accumulate && is_usual(one))) &&
                   !has_parts(one.place) && !any_part(one.value, [&](const ScalarNode& x) {
                       return x.kind == ScalarNode::Kind::read && has_parts(x.operand.place());
                   });
        });
    }

    static bool is_usual(const Stmt& s) {
        return !s.position && (s.combine == Combine::sum || s.combine == Combine::prod ||
                               s.combine == Combine::max || s.combine == Combine::min);
    }

    // That an element is of the task's own part is proved by loops and guards as they were.
    bool has_parts(int place) const {
        return parts_.contains(place) || !kernel_.places[static_cast<std::size_t>(place)].parts.empty();
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

    // First by what holds for all points of the loop or for none: the guards of a part, all together.
    Stmts cut(const Stmt& s) {
        const std::vector<Guards> sets = sets_of(s);
        if (sets.empty()) return by_remainders(s);
        for (const Guards& set : sets)
            if (set.size() > most_guards || choices_in(some_fails(set).value) > most_choices) return one(s);
        Stmts r;
        if (sets.size() > most_sets) {
            Guards all;
            for (const Guards& set : sets)
                for (const Guard& g : set)
                    if (!contains(all, g)) all.push_back(g);
            if (all.size() > most_guards || choices_in(some_fails(all).value) > most_choices) return one(s);
            Stmt inside = s;
            inside.body = without(inside.body, all);
            r.push_back(when(all, by_remainders(inside)));
            r.push_back(when({some_fails(all)}, one(part(s, s.begin, s.end, {}))));
            return r;
        }
        for (std::size_t held = (std::size_t{1} << sets.size()); held-- > 0;) {
            Guards guards;
            Stmt inside = s;
            for (std::size_t k = 0; k < sets.size(); ++k) {
                const bool holds = (held >> k & 1) != 0;
                if (holds)
                    guards.insert(guards.end(), sets[k].begin(), sets[k].end());
                else
                    guards.push_back(some_fails(sets[k]));
                inside.body = settled(std::move(inside.body), s, sets[k], holds);
            }
            r.push_back(when(std::move(guards), by_remainders(inside)));
        }
        return r;
    }

    // Of each part's guards those that do not move with the loop.
    static Guards fixed(const Guards& guards, const Stmt& s) {
        Guards r;
        for (const Guard& g : guards)
            if (!depends_on(g, s.variable.symbol_id())) r.push_back(g);
        return r;
    }

    static std::vector<Guards> sets_of(const Stmt& s) {
        std::vector<Guards> sets;
        for (const Stmt& one : s.body) {
            if (!one.value) continue;
            for_each_part(one.value, [&](const ScalarNode& part) {
                Guards own = fixed(part.guards, s);
                if (!own.empty() && std::find(sets.begin(), sets.end(), own) == sets.end())
                    sets.push_back(std::move(own));
            });
        }
        return sets;
    }

    // Where all of the guards hold, or one of them does not.
    static Stmts settled(Stmts body, const Stmt& s, const Guards& guards, bool hold) {
        for (Stmt& one : body) {
            if (!one.value) continue;
            one.value = rebuild(one.value, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
                if (fixed(part->guards, s) != guards) return part;
                if (!hold && part->otherwise) return part->otherwise;
                return hold ? relieved(part, [&](const Guard& g) { return contains(guards, g); }) : part;
            });
        }
        return body;
    }

    // Points whose quotients by a small number are asked for, so many at a time: in each copy of the body the
    // remainder is known.
    Stmts by_remainders(const Stmt& s) {
        const std::int64_t period = Period(s.variable.symbol_id()).of(s.body);
        const bool few = period > 1 && period <= most_period &&
                         s.body.size() * static_cast<std::size_t>(period) <= most_statements;
        if (!few || !s.begin.is(0)) return by_points(s, s, 1);
        const Int whole = floordiv(s.end, period), variable = Int::symbol("quotient", s.variable.range());
        Stmts copies;
        for (std::int64_t r = 0; r < period; ++r)
            append(copies,
                   with_own_places(substitute(s.body, {{s.variable.symbol_id(), variable * period + r}})));
        return by_points(s, loop(variable, 0, whole, s.binding, without(std::move(copies), {})), period);
    }

    // What a copy of a body declares is its own.
    Stmts with_own_places(Stmts body) {
        std::map<int, int> own;
        for (const Stmt& s : body)
            if (s.kind == Stmt::Kind::declare &&
                own.emplace(s.place, static_cast<int>(kernel_.places.size())).second)
                kernel_.places.push_back(Place(kernel_.places[static_cast<std::size_t>(s.place)]));
        const auto moved = [&](int& place) {
            if (const auto at = own.find(place); at != own.end()) place = at->second;
        };
        for (Stmt& s : body) {
            moved(s.place);
            if (!s.value) continue;
            s.value = rebuild(s.value, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
                if (part->kind != ScalarNode::Kind::read) return part;
                int place = part->operand.place();
                moved(place);
                part->operand = Operand::of_place(place);
                return part;
            });
        }
        return body;
    }

    // The iterations between two numbers, where all guards hold that begin and end to hold with the loop, and
    // what is before and behind them as in `s`, which has `period` points for each of them.
    static Stmts by_points(const Stmt& s, const Stmt& inner, std::int64_t period) {
        const std::uint64_t id = inner.variable.symbol_id();
        Guards points;
        Int first = inner.begin, last = inner.end;
        for (const Guard& g : guards_of(inner.body)) {
            const Int rest = g.value - inner.variable;
            if (!depends_on(g, id) || depends_on(rest, id) || depends_on(g.low, id) || depends_on(g.high, id))
                continue;
            points.push_back(g);
            first = max(first, g.low - rest);
            last = min(last, g.high - rest);
        }
        first = min(first, inner.end);
        last = max(last, first);
        if (points.size() > most_guards || choices_in(last) > most_choices || (points.empty() && period == 1))
            return one(s);
        Stmts parts;
        add_part(parts, s, s.begin, first * period, {});
        add_part(parts, inner, first, last, points);
        add_part(parts, s, last * period, s.end, {});
        return parts;
    }

    static Stmts one(Stmt s) {
        Stmts r;
        r.push_back(std::move(s));
        return r;
    }

    static void add_part(Stmts& parts, const Stmt& s, const Int& begin, const Int& end,
                         const Guards& guards) {
        if ((end - begin).range().high > 0) parts.push_back(part(s, begin, end, guards));
    }

    // The iterations from `begin` below `end`, where the guards hold.
    static Stmt part(const Stmt& s, const Int& begin, const Int& end, const Guards& guards) {
        const Int variable = Int::symbol("part", s.variable.range());
        return loop(variable, begin, end, s.binding,
                    substitute(without(s.body, guards), {{s.variable.symbol_id(), variable}}));
    }

    KernelIR& kernel_;
    const std::map<int, std::vector<Part>>& parts_;
};

}  // namespace

void cut_at_guards(KernelIR& kernel) {
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments)
            segment.body = GuardCutter(kernel, segment.parts)(std::move(segment.body));
}

}  // namespace bitale
