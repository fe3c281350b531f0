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

// Formulas within formulas share parts, which a text repeats: it would be exponentially long.
constexpr int deepest = 4;

std::string text_at(const Int& x, int depth) {
    const auto inner = [depth](const Int& part) {
        return depth == deepest && !part.is_constant() && !part.symbol_id() ? "..."
                                                                            : text_at(part, depth + 1);
    };
    std::string s;
    for (const Int::Term& t : x.terms()) {
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
                s += t.atoms.size() > 1 || f != 1 ? "(" + inner(a->a) + ")" : inner(a->a);
            else if (a->kind == Atom::Kind::floordiv)
                s += "floordiv(" + inner(a->a) + ", " + inner(a->b) + ")";
            else
                s += (a->kind == Atom::Kind::min ? "min(" : "max(") + inner(a->a) + ", " + inner(a->b) + ")";
        }
    }
    if (s.empty()) return std::to_string(x.constant_term());
    if (x.constant_term() > 0) s += " + " + std::to_string(x.constant_term());
    if (x.constant_term() < 0) s += " - " + std::to_string(without_sign(x.constant_term()));
    return s;
}

}  // namespace

std::string Int::text() const { return text_at(*this, 0); }

}  // namespace bitale
