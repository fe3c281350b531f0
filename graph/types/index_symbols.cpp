// The symbols of an Int, and its hash.
#include <algorithm>
#include <map>
#include <set>

#include "graph/base/hash.h"
#include "graph/types/index.h"

namespace bitale {

namespace {

// Formulas share parts, each of which is looked at once.
void collect(const Int& x, std::map<std::uint64_t, AtomPtr>& into, std::set<const Atom*>& done) {
    for (const Int::Term& t : x.terms())
        for (const AtomPtr& a : t.atoms) {
            if (a->kind == Atom::Kind::symbol) {
                into.emplace(a->id, a);
                continue;
            }
            if (!done.insert(a.get()).second) continue;
            collect(a->a, into, done);
            collect(a->b, into, done);
        }
}

}  // namespace

std::uint64_t hash_of(const Int& x) {
    std::uint64_t h = static_cast<std::uint64_t>(x.constant_term());
    for (const Int::Term& term : x.terms()) {
        h = mix(h, static_cast<std::uint64_t>(term.factor));
        for (const AtomPtr& atom : term.atoms) h = mix(h, atom->hash);
    }
    return h;
}

std::vector<AtomPtr> symbols_of(const Int& x) {
    std::map<std::uint64_t, AtomPtr> found;
    std::set<const Atom*> done;
    collect(x, found, done);
    std::vector<AtomPtr> r;
    for (auto& [id, atom] : found) r.push_back(atom);
    return r;
}

bool depends_on(const Int& x, std::uint64_t symbol_id) {
    return std::any_of(x.terms().begin(), x.terms().end(), [&](const Int::Term& t) {
        return std::any_of(t.atoms.begin(), t.atoms.end(), [&](const AtomPtr& a) {
            if (symbol_id < a->first || symbol_id > a->last) return false;
            if (a->kind == Atom::Kind::symbol) return true;
            return depends_on(a->a, symbol_id) || depends_on(a->b, symbol_id);
        });
    });
}

}  // namespace bitale
