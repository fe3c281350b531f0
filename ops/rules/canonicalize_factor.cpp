// Constants that meet, quotients and powers.
#include <cmath>

#include "ops/elementwise/elementwise.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

// Whether a number stays an ordinary one in the dtype: neither lost to zero nor to infinity, no digits
// dropped.
bool ordinary(DType dtype, double x) {
    const double low = dtype == float64 ? 0x1p-1022 : 0x1p-126, high = dtype == float64 ? 0x1p1022 : 0x1p126;
    return std::abs(x) >= low && std::abs(x) <= high;
}

Condition ordinary_factor(const Pattern& x, const Pattern& c, const Pattern& d,
                          double (*joined)(double, double)) {
    return [=](const Match& m) {
        const DType dtype = m[x]->type.dtype;
        return is_float(dtype) && ordinary(dtype, m.number(c)) && ordinary(dtype, m.number(d)) &&
               ordinary(dtype, joined(m.number(c), m.number(d)));
    };
}

// A division by 2^n is a multiplication by 2^-n, which is as exact and much cheaper.
bool by_power_of_two(const Match& m, const Pattern& c) {
    int exponent = 0;
    const double x = m.number(c);
    return is_float(m[c]->type.dtype) && ordinary(m[c]->type.dtype, x) &&
           std::abs(std::frexp(x, &exponent)) == 0.5;
}

// Whether a number is a root or of integers, which are no subnormal numbers: its reciprocal is finite unless
// it is 0, and a product with it is finite where the quotient is.
bool has_ordinary_inverse(const NodePtr& x) {
    return x->op == sqrt_op() || (x->op == cast_op() && !is_float(x->inputs[0]->type.dtype));
}

// The reciprocal of a root that is repeated along some axes, repeated likewise; null for anything else.
NodePtr inverse_of_repeated_root(const NodePtr& divisor, Where where) {
    if (divisor->op == sqrt_op()) return make_node(reciprocal_op(), {divisor}, {}, where);
    if (divisor->op != expand_op() && divisor->op != reshape_op() && divisor->op != permute_op())
        return nullptr;
    const NodePtr inverse = inverse_of_repeated_root(divisor->inputs[0], where);
    return inverse ? make_node(divisor->op, {inverse}, divisor->attributes, divisor->where) : nullptr;
}

// One quotient for each root, not one for each element that it divides.
NodePtr times_inverse_of_root(const Match& m, const Pattern& x, const Pattern& y) {
    const NodePtr &divisor = m[y], inverse = inverse_of_repeated_root(divisor, m.root()->where);
    if (!inverse) return nullptr;
    const Node* root = divisor.get();
    while (root->op != sqrt_op()) root = root->inputs[0].get();
    if (count_of(root->type.shape) == count_of(m.root()->type.shape)) return nullptr;
    return make_node(mul_op(), {m[x], inverse}, {}, m.root()->where);
}

}  // namespace

std::vector<Rule> factor_rules() {
    const Pattern x = any("x"), y = any("y"), c = constant("c"), d = constant("d");
    const auto product = [](double a, double b) { return a * b; };
    const auto quotient = [](double a, double b) { return a / b; };
    const auto inverse_quotient = [](double a, double b) { return b / a; };
    return {
        {"add-constants-integer", (x + c) + d, x + (c + d), Tag::exact, of_integers(x)},
        {"mul-constants-integer", (x * c) * d, x * (c * d), Tag::exact, of_integers(x)},
        {"mul-constants", (x * c) * d, x * (c * d), Tag::reassociates, ordinary_factor(x, c, d, product)},
        {"mul-div-constants", (x * c) / d, x * (c / d), Tag::reassociates,
         ordinary_factor(x, c, d, quotient)},
        {"div-mul-constants", (x / c) * d, x * (d / c), Tag::reassociates,
         ordinary_factor(x, c, d, inverse_quotient)},
        {"div-constants", (x / c) / d, x / (c * d), Tag::reassociates, ordinary_factor(x, c, d, product)},
        {"div-power-of-two", x / c, x * (1 / c), Tag::exact,
         [x, c](const Match& m) { return !is_constant(m[x]) && by_power_of_two(m, c); }},
        {"div-repeated-root", x / y, [=](const Match& m) { return times_inverse_of_root(m, x, y); },
         Tag::reassociates},
        {"reciprocal", 1 / x, reciprocal(x)},
        {"mul-reciprocal", x * reciprocal(y), x / y, Tag::reassociates,
         [y](const Match& m) {  // unless the reciprocal of a root or a count has many factors
             return !has_ordinary_inverse(m[y]) ||
                    count_of(m[y]->type.shape) == count_of(m.root()->type.shape);
         }},
        {"mul-self", x * x, sqr(x)},
        {"pow-two", pow(x, 2), sqr(x), Tag::reassociates},
    };
}

}  // namespace bitale
