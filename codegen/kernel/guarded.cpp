#include "codegen/kernel/guarded.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "codegen/kernel/known_guards.h"
#include "codegen/kernel/likely.h"
#include "codegen/nest/compose.h"
#include "codegen/nest/walk.h"
#include "codegen/schedule/loops.h"

namespace bitale {

namespace {

// Compilers cut loops of a known length themselves where these are short.
constexpr std::int64_t shortest = 512;
// With more guarded elements, which compilers do not turn into masks of vectors.
constexpr std::int64_t shortest_guarded = 128;
// With functions behind guards, which compilers leave in branches.
constexpr std::int64_t shortest_costly = 24;
constexpr int few_choices = 8;
constexpr std::size_t most_statements = 64, most_guards = 8;
constexpr int most_choices = 8, most_branches = 4, most_cuts = 3;
constexpr std::int64_t most_period = 8;
constexpr double usual_share = 0.8;   // of the points: a branch for them alone
constexpr double shortest_part = 64;  // points beside a part whose guards are settled that are cut once more

using Guards = std::vector<Guard>;

bool contains(const Guards& guards, const Guard& g) {
    return std::find(guards.begin(), guards.end(), g) != guards.end();
}

// Minima and maxima inside, each of which is printed with both operands twice. Formulas share their parts:
// what is not looked at within so many steps counts as too many.
int choices_in(const Int& x, int& steps) {
    int n = 0;
    for (const Int::Term& t : x.terms())
        for (const AtomPtr& a : t.atoms) {
            if (a->kind == Atom::Kind::symbol) continue;
            if (--steps < 0) return most_choices + 1;
            n +=
                choices_in(a->a, steps) + choices_in(a->b, steps) + (a->kind == Atom::Kind::floordiv ? 0 : 1);
        }
    return n;
}
int choices_in(const Int& x) {
    int steps = 64;
    return choices_in(x, steps);
}

// What is done only where guards hold is done, or left out, where it is known whether they do.
Stmts settled(Stmts body, const KnownGuards& known) {
    Stmts r;
    for (Stmt& s : body) {
        s.value = known.settled(s.value);
        if (s.kind != Stmt::Kind::when) {
            r.push_back(std::move(s));
            continue;
        }
        Guards open;
        bool never = false;
        for (const Guard& g : s.guards) {
            const std::optional<bool> holds = known.holds(g);
            never = never || holds == false;
            if (!holds) open.push_back(g);
        }
        if (never) continue;
        s.body = settled(std::move(s.body), known);
        s.guards = std::move(open);
        if (s.guards.empty())
            append(r, std::move(s.body));
        else
            r.push_back(std::move(s));
    }
    return r;
}

// f(statement) for each of them, and for those under guards.
template <class F>
void for_each_statement(const Stmts& body, F&& f) {
    for (const Stmt& s : body) {
        f(s);
        if (s.kind == Stmt::Kind::when) for_each_statement(s.body, f);
    }
}

// Holds where the guard does not.
Guard fails(const Guard& g) {
    if ((g.value - g.low).non_negative()) return {g.value, g.high, g.value.range().high + 1};
    if ((g.high - 1 - g.value).non_negative()) return {g.value, g.value.range().low, g.low};
    return {min(g.value - g.low, g.high - 1 - g.value), IntRange::lowest, 0};
}

// The least common multiple of what quotients of the variable are taken by: 1 where there are none.
class Period {
  public:
    Period(std::uint64_t id, const std::vector<Place>& places) : id_(id), places_(places) {}

    std::int64_t of(const Stmts& body) {
        for_each_statement(body, [&](const Stmt& s) {
            look_at(s.place, s.at);
            look(s.guards);
            if (!s.value) return;
            for_each_part(s.value, [&](const ScalarNode& part) {
                if (part.kind == ScalarNode::Kind::read) look_at(part.operand.place(), part.at);
                look(part.guards);
                if (part.kind == ScalarNode::Kind::index) look(part.index);
            });
        });
        return period_;
    }

  private:
    // Indices of neighbouring axes may have quotients that their offset does not have.
    void look_at(int place, const std::vector<Int>& at) {
        if (at.empty() || !has_quotients(offset_of(places_[static_cast<std::size_t>(place)], at))) return;
        for (const Int& x : at) look(x);
    }

    bool has_quotients(const Int& x) const {
        return std::any_of(x.terms().begin(), x.terms().end(), [&](const Int::Term& t) {
            return std::any_of(t.atoms.begin(), t.atoms.end(), [&](const AtomPtr& a) {
                return a->kind != Atom::Kind::symbol && (depends_on(a->a, id_) || depends_on(a->b, id_));
            });
        });
    }

    void look(const Guards& guards) {
        for (const Guard& g : guards)
            for (const Int* x : {&g.value, &g.low, &g.high}) look(*x);
    }

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
    const std::vector<Place>& places_;
    std::int64_t period_ = 1;
};

class GuardCutter {
  public:
    // `also_parts`: loops over what a task has of a value as well. `sizes`: symbols of the lengths of a call.
    GuardCutter(KernelIR& kernel, const Segment& segment, const std::set<std::uint64_t>& sizes,
                bool also_parts)
        : kernel_(kernel), parts_(segment.parts), sizes_(sizes), also_parts_(also_parts) {
        points_.enter(segment.task, 0, segment.tasks);
    }
    bool any_parts() const { return any_parts_; }

    Stmts operator()(Stmts body) {
        Stmts r;
        std::size_t found = 0;  // variables that are not those of loops
        for (Stmt& s : body) {
            // What is known of a point may be known once lanes share an element.
            if (s.kind == Stmt::Kind::loop && s.binding == Binding::simd)
                s.body = settled(std::move(s.body), {});
            if (suits(s)) {
                append(r, cut(s, most_branches));
                continue;
            }
            if (s.kind == Stmt::Kind::let || s.kind == Stmt::Kind::search) {
                points_.enter(s.variable, 0, s.end);
                ++found;
            }
            const bool is_loop = s.kind == Stmt::Kind::loop;
            if (is_loop) points_.enter(s.variable, s.begin, s.end);
            s.body = (*this)(std::move(s.body));
            if (is_loop) points_.leave();
            r.push_back(std::move(s));
        }
        for (; found > 0; --found) points_.leave();
        return r;
    }

  private:
    bool suits(const Stmt& s) {
        if (s.kind != Stmt::Kind::loop || s.binding != Binding::simd || s.step != 1 || !s.high.is(0) ||
            !s.variable.symbol_id())
            return false;
        if (s.begin.is_constant() && s.end.is_constant()) {
            const std::int64_t length = s.end.constant() - s.begin.constant();
            const std::int64_t least = has_branches(s) || has_costly_choices(s) || are_of_loops_around(s)
                                           ? shortest_costly
                                       : choices_of(s) > few_choices ? shortest_guarded
                                                                     : shortest;
            if (length < least) return false;
        }
        bool parts = false, usual = true;
        std::size_t statements = 0;
        for_each_statement(s.body, [&](const Stmt& one) {
            ++statements;
            if (one.kind == Stmt::Kind::comment || one.kind == Stmt::Kind::declare ||
                one.kind == Stmt::Kind::when)
                return;
            usual = usual &&
                    (one.kind == Stmt::Kind::set || (one.kind == Stmt::Kind::accumulate && is_usual(one)));
            if (!usual) return;
            parts = parts || has_parts(one.place) || any_part(one.value, [&](const ScalarNode& x) {
                        return x.kind == ScalarNode::Kind::read && has_parts(x.operand.place());
                    });
        });
        any_parts_ = any_parts_ || parts;
        return usual && statements <= most_statements && (also_parts_ || !parts);
    }

    static int choices_of(const Stmt& s) {
        int n = 0;
        for_each_statement(s.body, [&](const Stmt& one) {
            n += one.kind == Stmt::Kind::when;
            if (one.value)
                for_each_part(one.value, [&](const ScalarNode& part) { n += !part.guards.empty(); });
        });
        return n;
    }

    // Statements under guards, as those of a window's cells beside a border: compilers make no masks of them.
    static bool has_branches(const Stmt& s) {
        return std::any_of(s.body.begin(), s.body.end(),
                           [](const Stmt& one) { return one.kind == Stmt::Kind::when; });
    }

    // Guards that move with the loop around functions.
    static bool has_costly_choices(const Stmt& s) {
        return std::any_of(s.body.begin(), s.body.end(), [&](const Stmt& one) {
            return one.value && any_part(one.value, [&](const ScalarNode& part) {
                       const bool moves =
                           std::any_of(part.guards.begin(), part.guards.end(),
                                       [&](const Guard& g) { return depends_on(g, s.variable.symbol_id()); });
                       return moves && (is_costly(part.otherwise) ||
                                        std::any_of(part.arguments.begin(), part.arguments.end(),
                                                    [](const Scalar& x) { return is_costly(x); }));
                   });
        });
    }

    // Several choices, none of which moves with the loop.
    static bool are_of_loops_around(const Stmt& s) {
        constexpr int several = 4;
        return choices_of(s) >= several && guards_of(s, true).empty();
    }

    static bool is_usual(const Stmt& s) {
        return !s.position && (s.combine == Combine::sum || s.combine == Combine::prod ||
                               s.combine == Combine::max || s.combine == Combine::min);
    }

    bool has_parts(int place) const {
        return parts_.contains(place) || !kernel_.places[static_cast<std::size_t>(place)].parts.empty();
    }

    // Those that move with the loop, or those that do not.
    static Guards guards_of(const Stmt& s, bool moving) {
        Guards all;
        const auto look = [&](const Guards& guards) {
            for (const Guard& g : guards)
                if (depends_on(g, s.variable.symbol_id()) == moving && !contains(all, g)) all.push_back(g);
        };
        for_each_statement(s.body, [&](const Stmt& one) {
            look(one.guards);
            if (one.value) for_each_part(one.value, [&](const ScalarNode& part) { look(part.guards); });
        });
        return all;
    }

    // By choices in each turn. What follows from the lengths of a call is computed once for it
    // (keep_values_of_lengths).
    bool is_computed(const Int& x) const {
        const std::vector<AtomPtr> symbols = symbols_of(x);
        return choices_in(x) > 0 && !std::all_of(symbols.begin(), symbols.end(), [&](const AtomPtr& symbol) {
                   return sizes_.contains(symbol->id);
               });
    }

    // First by what holds for all points of the loop or for none. Where guards are mostly on one side, as at
    // all rows but the first, a branch for that; where they are not, one for each side.
    Stmts cut(const Stmt& s, int branches) {
        const Guards fixed = guards_of(s, false);
        if (fixed.empty()) return by_remainders(s);
        KnownGuards usual;
        LikelyPoints::Sample sample = points_.sample();
        Guards open;
        for (const Guard& g : fixed) {
            const LikelyPoints::Likely likely = sample.side_of(g);
            LikelyPoints::Sample left = sample;
            left.keep(g, likely.side);
            if (left.share_left() < usual_share || is_computed(g.low) || is_computed(g.high)) {
                open.push_back(g);
                continue;
            }
            usual.assume(g, likely.side);
            sample = std::move(left);
        }
        if (open.size() < fixed.size()) {
            const Guards conditions = usual.conditions();
            if (conditions.size() > most_guards) return one(s);
            const Stmt left = with_body(s, settled(s.body, usual));
            // Bounds with choices of lengths may leave a guard open that is assumed.
            if (guards_of(left, false).size() >= fixed.size()) return cut_at(fixed.front(), s, branches);
            Stmts inside = cut(left, branches);
            const Stmt others = part(s, s.begin, s.end);
            return either(conditions, std::move(inside),
                          has_branches(s) || are_of_loops_around(s) ? cut_at(fixed.front(), others, branches)
                                                                    : one(others));
        }
        return cut_at(open.front(), s, branches);
    }

    // Where the guard holds, and where it does not.
    Stmts cut_at(const Guard& g, const Stmt& s, int branches) {
        if (branches < 2 || choices_in(fails(g).value) > most_choices) return one(s);
        KnownGuards yes, no;
        yes.assume(g, GuardSide::within);
        if ((g.value - g.low).non_negative())
            no.assume(g, GuardSide::above);
        else if ((g.high - 1 - g.value).non_negative())
            no.assume(g, GuardSide::below);
        else
            no.assume_not(g);
        Stmts r;
        const auto side = [&](const Stmt& x) {
            const Guards left = guards_of(x, false);
            return are_of_loops_around(s) && !left.empty() ? cut_at(left.front(), x, branches / 2)
                                                           : cut(x, branches / 2);
        };
        r.push_back(when({g}, side(with_body(s, settled(s.body, yes)))));
        r.push_back(when({fails(g)}, side(with_own_variable(s, settled(s.body, no)))));
        return r;
    }

    // if (the guards hold) { ... } else { ... }
    Stmts either(const Guards& guards, Stmts yes, Stmts no) {
        const Int hold = Int::symbol("hold", {0, 1});
        Stmts r;
        r.push_back(
            let(hold, scalar_select(guards, scalar_integer(DType::int64, 1), scalar_integer(DType::int64, 0)),
                2));
        r.push_back(when(guards, std::move(yes)));
        r.push_back(when({{hold, 0, 1}}, std::move(no)));
        return r;
    }

    static Stmt with_body(const Stmt& s, Stmts body) {
        Stmt r = s;
        r.body = std::move(body);
        return r;
    }

    static Stmt with_own_variable(const Stmt& s, Stmts body) {
        return part(with_body(s, std::move(body)), s.begin, s.end);
    }

    // Points whose quotients by a small number are asked for, so many at a time: in each copy of the body the
    // remainder is known.
    Stmts by_remainders(const Stmt& s) {
        const std::int64_t period = Period(s.variable.symbol_id(), kernel_.places).of(s.body);
        const bool few = period > 1 && period <= most_period &&
                         s.body.size() * static_cast<std::size_t>(period) <= most_statements;
        if (!few || !s.begin.is(0)) return by_points(s, s, 1);
        const Int whole = floordiv(s.end, period), variable = Int::symbol("quotient", s.variable.range());
        Stmts copies;
        for (std::int64_t r = 0; r < period; ++r)
            append(copies,
                   with_own_places(substitute(s.body, {{s.variable.symbol_id(), variable * period + r}})));
        return by_points(s, loop(variable, 0, whole, s.binding, settled(std::move(copies), {})), period);
    }

    // What a copy of a body declares is its own.
    Stmts with_own_places(Stmts body) {
        std::map<int, int> own;
        for_each_statement(body, [&](const Stmt& s) {
            if (s.kind == Stmt::Kind::declare &&
                own.emplace(s.place, static_cast<int>(kernel_.places.size())).second)
                kernel_.places.push_back(Place(kernel_.places[static_cast<std::size_t>(s.place)]));
        });
        return with_places(std::move(body), own);
    }

    static Stmts with_places(Stmts body, const std::map<int, int>& own) {
        const auto moved = [&](int place) {
            const auto at = own.find(place);
            return at == own.end() ? place : at->second;
        };
        for (Stmt& s : body) {
            s.place = moved(s.place);
            s.body = with_places(std::move(s.body), own);
            if (!s.value) continue;
            s.value = rebuild(s.value, [&](std::shared_ptr<ScalarNode> part) -> Scalar {
                if (part->kind == ScalarNode::Kind::read)
                    part->operand = Operand::of_place(moved(part->operand.place()));
                return part;
            });
        }
        return body;
    }

    // The iterations between two numbers, where guards that begin and end to hold with the loop are on the
    // side where they mostly are, and what is before and behind them as in `s`, which has `period` points for
    // each of them.
    Stmts by_points(const Stmt& s, const Stmt& inner, std::int64_t period, int cuts = most_cuts) {
        points_.enter(inner.variable, inner.begin, inner.end);
        LikelyPoints::Sample sample = points_.sample();
        points_.leave();
        KnownGuards inside;
        Int first = inner.begin, last = inner.end;
        bool any = false;
        for (const Guard& g : guards_of(inner, true)) {
            const std::optional<Run> run = run_of(g, inner.variable);
            if (!run) continue;
            const GuardSide side = sample.side_of(g).side;
            sample.keep(g, side);
            if (sample.share_left() == 0) return one(s);
            inside.assume(g, side);
            any = true;
            // Backwards, what is above the guard comes first.
            const GuardSide order = !run->backwards || side == GuardSide::within ? side
                                    : side == GuardSide::above                   ? GuardSide::below
                                                                                 : GuardSide::above;
            if (order == GuardSide::within) first = max(first, run->begin);
            if (order == GuardSide::above) first = max(first, run->end);
            if (order == GuardSide::within) last = min(last, run->end);
            if (order == GuardSide::below) last = min(last, run->begin);
        }
        first = min(first, inner.end);
        last = max(last, first);
        if (choices_in(last) > most_choices || (!any && period == 1)) return one(s);
        Stmts parts;
        const auto beside = [&](const Int& begin, const Int& end) {
            if ((end - begin).range().high <= 0) return;
            const Stmt rest = part(s, begin, end);
            const bool again = cuts > 1 && period == 1 && sample.mean_of(end - begin) >= shortest_part;
            append(parts, again ? by_points(rest, rest, 1, cuts - 1) : one(rest));
        };
        beside(s.begin, first * period);
        if ((last - first).range().high > 0)
            parts.push_back(part(with_body(inner, settled(inner.body, inside)), first, last));
        beside(last * period, s.end);
        return parts;
    }

    // The values of the variable for which a guard holds.
    struct Run {
        Int begin, end;
        bool backwards = false;  // the guard's value falls
    };
    static std::optional<Run> run_of(const Guard& g, const Int& variable) {
        const std::uint64_t id = variable.symbol_id();
        if (depends_on(g.low, id) || depends_on(g.high, id)) return {};
        if (const Int rest = g.value - variable; !depends_on(rest, id))
            return Run{g.low - rest, g.high - rest, false};
        if (const Int rest = g.value + variable; !depends_on(rest, id))
            return Run{rest - g.high + 1, rest - g.low + 1, true};
        return {};
    }

    static Stmts one(Stmt s) {
        Stmts r;
        r.push_back(std::move(s));
        return r;
    }

    // The iterations from `begin` below `end`.
    static Stmt part(const Stmt& s, const Int& begin, const Int& end) {
        IntRange range = s.variable.range();
        if (begin.is_constant()) range.low = std::max(range.low, begin.constant());
        if (end.is_constant()) range.high = std::min(range.high, end.constant() - 1);
        const Int variable = Int::symbol("part", range);
        return loop(variable, begin, end, s.binding,
                    settled(substitute(s.body, {{s.variable.symbol_id(), variable}}), {}));
    }

    KernelIR& kernel_;
    const std::map<int, std::vector<Part>>& parts_;
    const std::set<std::uint64_t>& sizes_;
    const bool also_parts_;
    bool any_parts_ = false;
    LikelyPoints points_;
};

}  // namespace

void cut_at_guards(KernelIR& kernel, const std::set<std::uint64_t>& sizes) {
    for (Phase& phase : kernel.phases)
        for (Segment& segment : phase.segments) {
            GuardCutter cutter(kernel, segment, sizes, true);
            Segment cut = segment;
            cut.body = cutter(std::move(cut.body));
            // That an element is of the task's own part is proved by loops and guards.
            if (cutter.any_parts() && !is_verified(kernel, cut, sizes))
                cut.body = GuardCutter(kernel, segment, sizes, false)(segment.body);
            segment.body = std::move(cut.body);
        }
}

}  // namespace bitale
