// Ints as a reader sees them.
#include <cstdint>
#include <string>

#include "graph/types/index.h"

namespace bitale {

namespace {

std::uint64_t without_sign(std::int64_t x) {
    const auto bits = static_cast<std::uint64_t>(x);
    return x < 0 ? 0 - bits : bits;
}

// A block of starts_of(): readers see the sum alone.
bool is_sum_of_lengths(const Atom& a) { return a.kind == Atom::Kind::max && a.b.is(0) && a.a.non_negative(); }

}  // namespace

std::string Int::text() const {
    std::string s;
    for (const Term& t : terms()) {
        const std::int64_t f = t.factor;
        if (!s.empty())
            s += f < 0 ? " - " : " + ";
        else if (f < 0)
            s += "-";
        bool first = true;
        if (f != 1 && f != -1) {
            s += std::to_string(without_sign(f));
            first = false;
        }
        for (const AtomPtr& a : t.atoms) {
            if (!first) s += "*";
            first = false;
            if (a->kind == Atom::Kind::symbol)
                s += a->name;
            else if (is_sum_of_lengths(*a))
                s += t.atoms.size() > 1 || f != 1 ? "(" + a->a.text() + ")" : a->a.text();
            else if (a->kind == Atom::Kind::floordiv)
                s += "floordiv(" + a->a.text() + ", " + a->b.text() + ")";
            else
                s += (a->kind == Atom::Kind::min ? "min(" : "max(") + a->a.text() + ", " + a->b.text() + ")";
        }
    }
    if (s.empty()) return std::to_string(constant_);
    if (constant_ > 0) s += " + " + std::to_string(constant_);
    if (constant_ < 0) s += " - " + std::to_string(without_sign(constant_));
    return s;
}

}  // namespace bitale
