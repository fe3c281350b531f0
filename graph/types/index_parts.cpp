// Lengths of the parts of an axis, added up.
#include "graph/types/index.h"

namespace bitale {

namespace {

AtomPtr only_atom(const Int::Term& t, Atom::Kind kind) {
    return t.atoms.size() == 1 && t.atoms[0]->kind == kind ? t.atoms[0] : nullptr;
}

// Writes factor * p for factor * (min(p, q) + max(0, p - q)); whether there are two such terms.
bool join_one_pair(Int& x) {
    for (const Int::Term& of_part : x.terms()) {
        const AtomPtr part = only_atom(of_part, Atom::Kind::min);
        if (!part) continue;
        for (const Int::Term& of_rest : x.terms()) {
            const AtomPtr rest = only_atom(of_rest, Atom::Kind::max);
            if (!rest || of_rest.factor != of_part.factor || (!rest->a.is(0) && !rest->b.is(0))) continue;
            const Int &more = rest->a.is(0) ? rest->b : rest->a, difference = part->a - part->b;
            const bool of_first = more == difference;
            if (!of_first && !(more == Int(0) - difference)) continue;
            x = x + of_part.factor * ((of_first ? part->a : part->b) - Int::from(part) - Int::from(rest));
            return true;
        }
    }
    return false;
}

}  // namespace

Int with_parts_joined(const Int& x) {
    constexpr std::size_t most_terms = 64;
    Int r = x;
    while (r.terms().size() <= most_terms && join_one_pair(r)) {
    }
    return r;
}

}  // namespace bitale
