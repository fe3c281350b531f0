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
constexpr int most_formulas = 64;

std::string text_of(const Int& x, int& left) {
    const auto inner = [&left](const Int& part) {
        return left <= 0 && !part.is_constant() && !part.symbol_id() ? "..." : text_of(part, left);
    };
    const auto of_both = [&inner](const Atom& a) {
        const std::string first = inner(a.a);
        return first + ", " + inner(a.b);
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
            left -= a->kind == Atom::Kind::symbol ? 0 : 1;
            if (a->kind == Atom::Kind::symbol)
                s += a->name;
            else if (is_sum_of_lengths(*a))
                s += t.atoms.size() > 1 || f != 1 ? "(" + inner(a->a) + ")" : inner(a->a);
            else if (a->kind == Atom::Kind::floordiv)
                s += "floordiv(" + of_both(*a) + ")";
            else
                s += (a->kind == Atom::Kind::min ? "min(" : "max(") + of_both(*a) + ")";
        }
    }
    if (s.empty()) return std::to_string(x.constant_term());
    if (x.constant_term() > 0) s += " + " + std::to_string(x.constant_term());
    if (x.constant_term() < 0) s += " - " + std::to_string(without_sign(x.constant_term()));
    return s;
}

}  // namespace

std::string Int::text() const {
    int left = most_formulas;
    return text_of(*this, left);
}

}  // namespace bitale
