// Lengths that were computed from others become lengths of their own.
#include <algorithm>

#include "graph/types/index.h"

namespace bitale {

namespace {

bool mentions(const Int& x, const AtomPtr& atom) {
    return std::any_of(x.terms().begin(), x.terms().end(), [&](const Int::Term& t) {
        return std::any_of(t.atoms.begin(), t.atoms.end(), [&](const AtomPtr& a) {
            if (atom->first < a->first || atom->last > a->last) return false;
            if (a == atom || Int::from(a) == Int::from(atom)) return true;
            return a->kind != Atom::Kind::symbol && (mentions(a->a, atom) || mentions(a->b, atom));
        });
    });
}

}  // namespace

Int with_atom(const Int& x, const AtomPtr& atom, const Int& by) {
    if (!mentions(x, atom)) return x;
    std::vector<Int> parts{x.constant_term()};
    for (const Int::Term& t : x.terms()) {
        Int product = t.factor;
        for (const AtomPtr& a : t.atoms) {
            const Int whole = Int::from(a);
            if (whole == Int::from(atom)) {
                product = product * by;
            } else if (!mentions(whole, atom)) {
                product = product * whole;
            } else {
                const Int left = with_atom(a->a, atom, by), right = with_atom(a->b, atom, by);
                product = product * (a->kind == Atom::Kind::floordiv ? floordiv(left, right)
                                     : a->kind == Atom::Kind::min    ? min(left, right)
                                                                     : max(left, right));
            }
        }
        parts.push_back(product);
    }
    return total_of(std::move(parts));
}

}  // namespace bitale
