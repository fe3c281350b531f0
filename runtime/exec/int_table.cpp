// Compiles polynomials over atoms into slots and runs them.
#include "runtime/exec/int_table.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/types/saturated.h"

namespace bitale {

IntTable::IntTable(const std::vector<std::uint64_t>& symbols) {
    for (std::size_t i = 0; i < symbols.size(); ++i) position_.emplace(symbols[i], static_cast<int>(i));
}

int IntTable::emit(Instruction instruction) {
    const auto [at, fresh] = known_.emplace(instruction.key(), static_cast<int>(code_.size()));
    if (fresh) code_.push_back(instruction);
    return at->second;
}

int IntTable::atom(const AtomPtr& atom) {
    if (atom->kind == Atom::Kind::symbol) {
        const auto at = position_.find(atom->id);
        BITALE_CHECK(at != position_.end(), "no argument gives the symbol " + atom->name + " its value");
        return emit({Kind::symbol, at->second, 0, 0});
    }
    if (const auto at = atoms_.find(atom); at != atoms_.end()) return at->second;
    const int a = add(atom->a), b = add(atom->b);
    const Kind kind = atom->kind == Atom::Kind::floordiv ? Kind::floordiv
                      : atom->kind == Atom::Kind::min    ? Kind::min
                                                         : Kind::max;
    return atoms_[atom] = emit({kind, a, b, 0});
}

int IntTable::add(const Int& x) {
    int sum = -1;
    for (const Int::Term& term : x.terms()) {
        int product = -1;
        for (const AtomPtr& a : term.atoms) {
            const int factor = atom(a);
            product = product < 0 ? factor : emit({Kind::multiply, product, factor, 0});
        }
        if (term.factor != 1)
            product = emit({Kind::multiply, product, emit({Kind::constant, 0, 0, term.factor}), 0});
        sum = sum < 0 ? product : emit({Kind::add, sum, product, 0});
    }
    if (sum < 0) return emit({Kind::constant, 0, 0, x.constant_term()});
    return x.constant_term() == 0
               ? sum
               : emit({Kind::add, sum, emit({Kind::constant, 0, 0, x.constant_term()}), 0});
}

std::vector<std::size_t> IntTable::used_symbols() const {
    std::vector<std::size_t> r;
    for (const Instruction& c : code_)
        if (c.kind == Kind::symbol) r.push_back(static_cast<std::size_t>(c.a));
    return r;
}

void IntTable::evaluate(const std::int64_t* symbols, std::int64_t* slots) const {
    for (std::size_t i = 0; i < code_.size(); ++i) {
        const Instruction& c = code_[i];
        switch (c.kind) {
            case Kind::constant: slots[i] = c.number; break;
            case Kind::symbol: slots[i] = symbols[c.a]; break;
            case Kind::add: slots[i] = saturated::sum(slots[c.a], slots[c.b]); break;
            case Kind::multiply: slots[i] = saturated::product(slots[c.a], slots[c.b]); break;
            case Kind::floordiv: slots[i] = saturated::floor_quotient(slots[c.a], slots[c.b]); break;
            case Kind::min: slots[i] = std::min(slots[c.a], slots[c.b]); break;
            case Kind::max: slots[i] = std::max(slots[c.a], slots[c.b]); break;
        }
    }
}

}  // namespace bitale
