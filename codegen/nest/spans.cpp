#include "codegen/nest/spans.h"

#include <algorithm>
#include <utility>

namespace bitale {

namespace {

// Every minimum and maximum is two more questions: after so many the answer is that it is not sure.
bool surely_non_negative(const Int& sum, int& questions) {
    if (--questions < 0 || example_of(sum) < 0) return false;
    if (sum.non_negative()) return true;
    const Int x = written_out_where_it_cancels(sum);
    if (x.non_negative()) return true;
    return std::any_of(x.terms().begin(), x.terms().end(), [&](const Int::Term& t) {
        const Atom& a = *t.atoms[0];
        const bool most = a.kind == Atom::Kind::max && t.factor > 0,
                   least = a.kind == Atom::Kind::min && t.factor < 0;
        if (t.atoms.size() != 1 || !(most || least)) return false;
        const Int rest = x - t.factor * Int::from(t.atoms[0]);
        return surely_non_negative(rest + t.factor * a.a, questions) ||
               surely_non_negative(rest + t.factor * a.b, questions);
    });
}

bool surely_non_negative(const Int& sum) {
    int questions = 256;
    return surely_non_negative(sum, questions);
}

// Of a loop that has a point at all: of max(n, 0) points, n - 1.
Int last_of(const Int& extent) {
    const AtomPtr& atom = extent.terms().size() == 1 ? extent.terms()[0].atoms[0] : nullptr;
    if (atom && atom->kind == Atom::Kind::max && Int::from(atom) == extent) {
        if (atom->a.is(0)) return atom->b - 1;
        if (atom->b.is(0)) return atom->a - 1;
    }
    return extent - 1;
}

bool is_one(const Span& s) { return s.low == s.high; }

}  // namespace

Spans::Spans(const Nest& nest) {
    for (const std::vector<Loop>* loops : {&nest.parallel, &nest.reduced})
        for (const Loop& l : *loops)
            if (const std::uint64_t id = l.variable.symbol_id()) last_.emplace(id, last_of(l.extent));
    moving_ = last_;
    for (const Let& let : nest.lets) moving_.emplace(let.symbol.symbol_id(), 0);
}

std::optional<Span> Spans::of(const Int& x) const {
    std::optional<Span> r = walk(x);
    if (r && (depends_on_any(r->low, moving_) || depends_on_any(r->high, moving_))) return {};
    return r;
}

// Terms that do not move are left alone: sums of many lengths would be copied for each of them.
std::optional<Span> Spans::walk(const Int& x) const {
    Span sum{x, x};
    for (const Int::Term& t : x.terms()) {
        if (std::none_of(t.atoms.begin(), t.atoms.end(), [&](const AtomPtr& a) { return moves(*a); }))
            continue;
        Int factor = t.factor, term = t.factor;
        std::optional<Span> moving;
        for (const AtomPtr& a : t.atoms) {
            const Int own = Int::from(a);
            term = term * own;
            if (!moves(*a)) {
                factor = factor * own;
                continue;
            }
            if (moving) return {};
            moving = walk(*a);
            if (!moving) return {};
        }
        const bool up = factor.non_negative();
        if (!up && !(Int(0) - factor).non_negative()) return {};
        sum.low = sum.low - term + factor * (up ? moving->low : moving->high);
        sum.high = sum.high - term + factor * (up ? moving->high : moving->low);
    }
    return sum;
}

bool Spans::moves(const Atom& a) const {
    if (a.kind == Atom::Kind::symbol) return last_.contains(a.id);
    return depends_on_any(a.a, last_) || depends_on_any(a.b, last_);
}

std::optional<Span> Spans::walk(const Atom& a) const {
    if (a.kind == Atom::Kind::symbol) return Span{0, last_.at(a.id)};
    const std::optional<Span> x = walk(a.a), y = walk(a.b);
    if (!x || !y) return {};
    if (a.kind == Atom::Kind::min) return Span{min(x->low, y->low), min(x->high, y->high)};
    if (a.kind == Atom::Kind::max) return Span{max(x->low, y->low), max(x->high, y->high)};
    if (!is_one(*y) || y->low.range().low <= 0) return {};
    return Span{floordiv(x->low, y->low), floordiv(x->high, y->low)};
}

bool at_least(const Int& a, const Int& b) { return surely_non_negative(a - b); }

}  // namespace bitale
