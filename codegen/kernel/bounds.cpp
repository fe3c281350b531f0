#include "codegen/kernel/bounds.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace bitale {

namespace {

// Of which x is the least: a minimum in it replaced by either side.
std::vector<Int> least_of(const Int& x) {
    for (const Int::Term& term : x.terms())
        if (const AtomPtr& atom = term.atoms.front();
            term.atoms.size() == 1 && term.factor > 0 && atom->kind == Atom::Kind::min) {
            const Int rest = x - Int(term.factor) * Int::from(atom);
            return {rest + Int(term.factor) * atom->a, rest + Int(term.factor) * atom->b};
        }
    return {x};
}

// What bounds x from above: minima in it replaced by either side.
std::vector<Int> bounds_above(const Int& x) {
    for (const Int::Term& term : x.terms())
        for (const AtomPtr& atom : term.atoms) {
            if (atom->kind != Atom::Kind::min) continue;
            if (std::count(term.atoms.begin(), term.atoms.end(), atom) > 1) continue;
            Int others = term.factor;
            for (const AtomPtr& other : term.atoms)
                if (other != atom) others = others * Int::from(other);
            if (!others.non_negative()) continue;
            std::vector<Int> all;
            for (const Int* side : {&atom->a, &atom->b})
                for (const Int& one : bounds_above(x - others * Int::from(atom) + others * *side))
                    all.push_back(one);
            return all;
        }
    return {x};
}

}  // namespace

bool Bounds::non_negative(const Int& x) const {
    const auto always = [&](const Int& y) { return never_negative(y, loops_.size()); };
    return always(x) || std::any_of(guards_.begin(), guards_.end(), [&](const Guard& g) {
               return always(x - g.value + g.low) || always(x + g.value - (g.high - 1));
           });
}

void Bounds::enter(const Stmt& loop) {
    Known known{loop.variable, loop.begin, loop.end - 1};
    const Int length = loop.end - loop.begin;
    if (loop.step > 1) {
        const bool whole = length.constant_term() % loop.step == 0 &&
                           std::all_of(length.terms().begin(), length.terms().end(),
                                       [&](const Int::Term& t) { return t.factor % loop.step == 0; });
        if (length.is_constant())
            known.last = loop.begin + floordiv(length - 1, loop.step) * loop.step;
        else if (whole)
            known.last = loop.end - loop.step;
    }
    if (!loop.high.is(0)) known.last = loop.high - 1;
    loops_.push_back(std::move(known));
}

bool Bounds::never_negative(const Int& x, std::size_t loop) const {
    if (x.range().low >= 0) return true;
    for (const Int::Term& term : x.terms()) {
        const Atom& quotient = *term.atoms.front();
        if (term.atoms.size() > 1 || quotient.kind != Atom::Kind::floordiv || !quotient.b.non_negative())
            continue;
        // By its definition for divisors above 0; where the divisor is 0, so is the quotient, and x is the
        // rest.
        const Int rest = x - Int(term.factor) * Int::from(term.atoms.front());
        if (!rest.non_negative() && !(quotient.b - 1).non_negative()) continue;
        if (term.factor == -1 && never_negative((rest + 1) * quotient.b - 1 - quotient.a, loop)) return true;
        if (term.factor == 1 && never_negative(rest * quotient.b + quotient.a, loop)) return true;
        // A multiple of the quotient is at most the same multiple of what it is rounded down from; and none
        // below 0 where the dividend is none.
        if (term.factor < -1 && never_negative(rest * quotient.b + Int(term.factor) * quotient.a, loop))
            return true;
        if (term.factor > 1 && never_negative(rest, loop) && never_negative(quotient.a, loop)) return true;
    }
    // A quotient times its divisor, as in a remainder by a length that is a minimum.
    for (const Int::Term& term : x.terms()) {
        if (term.atoms.size() < 2) continue;
        for (const AtomPtr& atom : term.atoms) {
            const Atom& quotient = *atom;
            if (quotient.kind != Atom::Kind::floordiv || !never_negative(quotient.a, loop)) continue;
            const Int multiple = Int::from(atom) * quotient.b;
            // It is at most the dividend, also where the divisor and it are 0.
            if (const Int rest = x + multiple; rest.terms().size() < x.terms().size())
                if (never_negative(quotient.b, loop) && never_negative(rest - quotient.a, loop)) return true;
            // And less than a divisor below it, unless that is 0.
            if (const Int rest = x - multiple; rest.terms().size() < x.terms().size())
                if (never_negative(quotient.b - 1, loop) &&
                    never_negative(rest + quotient.a - quotient.b + 1, loop))
                    return true;
        }
    }
    if (const std::vector<Int> sides = least_of(x); sides.size() > 1)
        return std::all_of(sides.begin(), sides.end(),
                           [&](const Int& side) { return never_negative(side, loop); });
    while (loop-- > 0) {
        const Known& known = loops_[loop];
        const std::uint64_t id = known.variable.symbol_id();
        if (!id || !depends_on(x, id)) continue;
        const Int step = substitute(x, {{id, known.variable + 1}}) - x;
        if (depends_on(step, id)) return false;
        // The least x is that of the first iteration, or of the last one.
        if (step.non_negative()) return never_negative(substitute(x, {{id, known.first}}), loop);
        if (!(-step).non_negative()) return false;
        const std::vector<Int> lasts = bounds_above(known.last);
        return std::any_of(lasts.begin(), lasts.end(), [&](const Int& last) {
            return never_negative(substitute(x, {{id, last}}), loop);
        });
    }
    return false;
}

}  // namespace bitale
