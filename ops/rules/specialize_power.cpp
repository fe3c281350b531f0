// Powers with small constant exponents as products and roots: a power is a logarithm and an exponential.
// Roots and most quotients only after gradients have been taken: that of a root is infinite at 0 where that
// of the power is 0.
#include <cmath>
#include <limits>

#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

namespace {

Expr squared(const Expr& x, Where where) { return apply(sqr_op(), {x}, {}, where); }

// x^n of a whole n from 1 to 4.
Expr whole_power(const Expr& x, int n, Where where) {
    const Expr square = n > 1 ? squared(x, where) : x;
    if (n < 3) return square;
    return n == 3 ? apply(mul_op(), {square, x}, {}, where) : squared(square, where);
}

// `other` where x is `value`.
Expr replaced(const Expr& x, double value, double other, Where where) {
    const auto number = [&](double n) { return wrap(scalar_node(type_of(x).dtype, n, where)); };
    const Expr found = apply(eq_op(), {x, number(value)}, {}, where);
    return apply(where_op(), {found, number(other), x}, {}, where);
}

// A power by roots is that of infinity for -infinity.
Expr without_lowest(const Expr& x, Where where) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return replaced(x, -infinity, infinity, where);
}

// base^(n + 1/2): never negative, NaN for negative numbers.
Expr half_power(const Expr& base, int n, Where where) {
    const Expr root = apply(sqrt_op(), {base}, {}, where);
    const Expr power = n == 0 ? root : apply(mul_op(), {whole_power(base, n, where), root}, {}, where);
    return apply(abs_op(), {power}, {}, where);
}

// Exponents of which neither gradients nor stable forms lose anything.
NodePtr by_products(const Match& m, const Pattern& x, const Pattern& c) {
    const double exponent = m.number(c);
    const Expr base = wrap(m[x]);
    const Where where = m.root()->where;
    if (exponent == -1) return apply(reciprocal_op(), {base}, {}, where).node();
    if (exponent != 3 && exponent != 4) return nullptr;
    return whole_power(base, static_cast<int>(exponent), where).node();
}

// Exponents that are a multiple of one half, as far as a few products take.
NodePtr by_roots(const Match& m, const Pattern& x, const Pattern& c) {
    constexpr double most = 4;
    const double exponent = m.number(c), twice = 2 * std::abs(exponent);
    if (!(std::abs(exponent) <= most) || twice != std::floor(twice) || twice == 0) return nullptr;
    const Where where = m.root()->where;
    const Expr base = wrap(m[x]);
    const auto n = static_cast<int>(std::abs(exponent));
    const bool is_whole = n == std::abs(exponent);
    const auto inverse = [&](const Expr& of) { return apply(reciprocal_op(), {of}, {}, where); };
    // Products of quotients reach the smallest floats, where products alone overflow. A root does not.
    if (is_whole) return whole_power(exponent > 0 ? base : inverse(base), n, where).node();
    const Expr usual = without_lowest(base, where);
    if (exponent > 0) return half_power(usual, n, where).node();
    if (n == 0) return inverse(half_power(usual, n, where)).node();
    // The inverse of -0 and of negative subnormal numbers is -infinity: 0 has a power, they have none.
    return half_power(inverse(replaced(usual, 0, 0, where)), n, where).node();
}

}  // namespace

std::vector<Rule> whole_power_rules() {
    const Pattern x = any("x"), c = constant("c");
    return {
        {"pow-by-products", pow(x, c), [=](const Match& m) { return by_products(m, x, c); },
         Tag::reassociates, of_floats(x)},
    };
}

std::vector<Rule> power_rules() {
    const Pattern x = any("x"), c = constant("c");
    return {
        {"pow-by-roots", pow(x, c), [=](const Match& m) { return by_roots(m, x, c); }, Tag::reassociates,
         of_floats(x)},
    };
}

}  // namespace bitale
