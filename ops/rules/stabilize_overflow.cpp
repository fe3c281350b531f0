// Quotients and products whose parts overflow where they do not: one exponential of their logarithms, whose
// derivatives are products with it.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "graph/walk/interner.h"
#include "ops/elementwise/elementwise.h"
#include "ops/rules/algebra.h"
#include "ops/rules/log_domain.h"
#include "ops/rules/rules.h"
#include "ops/rules/signs.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

NodePtr make(const Op* op, Nodes inputs, Where where) { return make_node(op, std::move(inputs), {}, where); }

// Of bounded functions the operand may be as large as it is.
bool is_bounded(const NodePtr& x) {
    return is_constant(x) || x->type.dtype == boolean ||
           is_named(x,
                    {"tanh", "sigmoid", "softmax", "erf", "erfc", "sin", "cos", "sign", "argmax", "argmin"});
}

// Whether a part of it may overflow.
bool has_overflow(const NodePtr& x, const Match& m) {
    constexpr std::size_t most = 256;
    std::unordered_set<const Node*> seen;
    Nodes left{x};
    while (!left.empty()) {
        const NodePtr node = left.back();
        left.pop_back();
        if (is_bounded(node) || !seen.insert(node.get()).second) continue;
        const bool grows = is_named(node, {"exp", "exp2", "expm1", "cosh"}) && may_overflow(node, m);
        if (grows || is_named(node, {"sinh", "prod"}) || seen.size() == most) return true;
        left.insert(left.end(), node->inputs.begin(), node->inputs.end());
    }
    return false;
}

// Whether its logarithm takes no logarithm of an operand, and no reduction: sums, products and powers of
// exponentials and numbers, 1 + exp(x) and cosh(x).
// Of a divisor also expm1(x), which is 0 nowhere then.
bool is_of_exponentials(const NodePtr& x, const Match& m, bool divides, int depth = 8) {
    if (depth == 0 || !m.may_look_through(x)) return false;
    if (is_named(x, {"exp", "exp2", "cosh"}) || (divides && is_named(x, {"expm1"}))) return true;
    const auto of = [&](std::size_t i) { return is_of_exponentials(x->inputs[i], m, divides, depth - 1); };
    const auto is_number = [&](std::size_t i) { return uniform_value(x->inputs[i]).has_value(); };
    if (is_named(x, {"add"})) {
        const auto is_one = [&](std::size_t i) {
            return is_number(i) && uniform_value(x->inputs[i])->at(0) == 1;
        };
        return (of(0) && (of(1) || is_one(1))) || (is_one(0) && of(1));
    }
    if (is_named(x, {"mul", "div"})) return (of(0) && (of(1) || is_number(1))) || (is_number(0) && of(1));
    return is_named(x, {"sqr", "sqrt", "pow", "reciprocal", "reshape", "permute", "expand", "cast"}) && of(0);
}

bool repeats_or_views(const Node& node) {
    return node.op == reshape_op() || node.op == permute_op() || node.op == expand_op();
}

// exp(-log(d) / parts), computed before d is repeated.
NodePtr inverse_of(const NodePtr& d, const Match& m, Where where, int parts = 1) {
    if (repeats_or_views(*d)) {
        const NodePtr inverse = inverse_of(d->inputs[0], m, where, parts);
        return inverse ? make_node(d->op, {inverse}, d->attributes, where) : nullptr;
    }
    const NodePtr logarithm = log_of_positive(d, m, where);
    if (!logarithm) return nullptr;
    const NodePtr by = scalar_node(logarithm->type.dtype, -1.0 / parts, where);
    return make(exp_op(), {make(mul_op(), {logarithm, by}, where)}, where);
}

NodePtr reciprocal_of(const Match& m, const Pattern& d) {
    if (!is_of_exponentials(m[d], m, true) || !may_overflow(m[d], m)) return nullptr;
    return inverse_of(m[d], m, m.root()->where);
}

// x / d
NodePtr quotient_of(const Match& m, const Pattern& x, const Pattern& d) {
    const Where where = m.root()->where;
    if (!is_of_exponentials(m[d], m, true) || !may_overflow(m[d], m)) return nullptr;
    const bool are_repeated = repeats_or_views(*m[x]) && repeats_or_views(*m[d]);
    if (same_points(m[x]->type.shape, m[d]->type.shape) && !are_repeated &&
        is_of_exponentials(m[x], m, false)) {
        const NodePtr above = log_of_positive(m[x], m, where);
        const NodePtr below = above ? log_of_positive(m[d], m, where) : nullptr;
        if (below) return make(exp_op(), {make(sub_op(), {above, below}, where)}, where);
    }
    if (has_overflow(m[x], m)) return nullptr;
    // Twice the root of the inverse, which is an ordinary number where the inverse is too small for one.
    const NodePtr root = inverse_of(m[d], m, where, 2);
    return root ? make(mul_op(), {make(mul_op(), {m[x], root}, where), root}, where) : nullptr;
}

// 1 / d^c
NodePtr power_of(const Match& m, const Pattern& d, const Pattern& c) {
    const Where where = m.root()->where;
    if (!(m.number(c) < 0) || !is_of_exponentials(m[d], m, true) || !may_overflow(m[d], m)) return nullptr;
    const NodePtr logarithm = log_of_positive(m[d], m, where);
    return logarithm ? make(exp_op(), {make(mul_op(), {logarithm, m[c]}, where)}, where) : nullptr;
}

// Factors of a product, through products of products and signs.
struct Factors {
    Nodes exponents, others;
    bool negative = false;

    Factors(const NodePtr& product, const Match& m) {
        constexpr std::size_t most = 16;
        Nodes left{product};
        while (!left.empty()) {
            const NodePtr node = left.back();
            left.pop_back();
            const bool fits = same_points(node->type.shape, product->type.shape) &&
                              m.may_look_through(node) &&
                              left.size() + exponents.size() + others.size() < most;
            if (fits && node->op == mul_op()) {
                left.insert(left.end(), {node->inputs[1], node->inputs[0]});
            } else if (fits && node->op == sqr_op() && node->inputs[0]->op == exp_op()) {
                left.insert(left.end(), {node->inputs[0], node->inputs[0]});
            } else if (fits && node->op == neg_op()) {
                left.push_back(node->inputs[0]);
                negative = !negative;
            } else {
                (fits && node->op == exp_op() ? exponents : others).push_back(node);
            }
        }
    }
};

// Whether u holds exp(v), or is -v: where one exponential overflows the other one vanishes.
bool makes_up_for(const NodePtr& u, const NodePtr& v, int depth = 6) {
    if (depth == 6 && u->op == neg_op() && same_expression(u->inputs[0], v)) return true;
    if (depth == 0) return false;
    if (u->op == exp_op() && same_expression(u->inputs[0], v)) return true;
    return u->op->map && std::any_of(u->inputs.begin(), u->inputs.end(),
                                     [&](const NodePtr& part) { return makes_up_for(part, v, depth - 1); });
}

// exp(x) * y * exp(-exp(x)) = y * exp(x - exp(x)), where inf * 0 would be possible
NodePtr product_of(const Match& m) {
    const NodePtr& root = m.root();
    if (!is_float(root->type.dtype)) return nullptr;
    const Factors factors(root, m);
    if (factors.exponents.size() < 2) return nullptr;
    const auto joined = [&](const Op* op, NodePtr all, const NodePtr& next) {
        return all ? make(op, {std::move(all), next}, root->where) : next;
    };
    // What makes up for none stays a factor.
    Nodes meet, others = factors.others;
    for (const NodePtr& factor : factors.exponents) {
        const bool meets =
            std::any_of(factors.exponents.begin(), factors.exponents.end(), [&](const NodePtr& other) {
                const NodePtr &u = factor->inputs[0], &v = other->inputs[0];
                return other != factor && (makes_up_for(u, v) || makes_up_for(v, u));
            });
        (meets ? meet : others).push_back(meets ? factor->inputs[0] : factor);
    }
    if (meet.size() < 2) return nullptr;
    NodePtr exponent, product;
    for (const NodePtr& one : meet) exponent = joined(add_op(), exponent, one);
    for (const NodePtr& factor : others) product = joined(mul_op(), product, factor);
    product = joined(mul_op(), product, make(exp_op(), {exponent}, root->where));
    return factors.negative ? make(neg_op(), {product}, root->where) : product;
}

// A mask of zeros and ones, known now: 0 * inf is 0 then.
NodePtr masked(const Match& m, const Pattern& x, const Pattern& mask) {
    if (is_constant(m[x]) && !is_constant(m[mask])) return masked(m, mask, x);
    if (!is_constant(m[mask]) || uniform_value(m[mask]) || !may_overflow(m[x], m)) return nullptr;
    const Array& value = constant_value(m[mask]);
    for (std::int64_t i = 0; i < value.size(); ++i)
        if (value.at(i) != 0 && value.at(i) != 1) return nullptr;
    const Where where = m.root()->where;
    const NodePtr chosen = make_constant(value.as(boolean), where);
    return make(where_op(), {chosen, m[x], scalar_node(m[x]->type.dtype, 0, where)}, where);
}

}  // namespace

std::vector<Rule> stabilize_overflow_rules() {
    const Pattern x = any("x"), d = any("d"), c = constant("c");
    const auto t = Tag::stabilizes;
    return {
        {"quotient-of-overflow", x / d, [=](const Match& m) { return quotient_of(m, x, d); }, t},
        {"reciprocal-of-overflow", reciprocal(d), [=](const Match& m) { return reciprocal_of(m, d); }, t},
        {"power-of-overflow", pow(d, c), [=](const Match& m) { return power_of(m, d, c); }, t},
        {"product-of-exponentials", x * d, [](const Match& m) { return product_of(m); }, t},
        {"mask-constant", x * d, [=](const Match& m) { return masked(m, x, d); }, t},
    };
}

}  // namespace bitale
