// Quotients and products whose parts overflow where they do not: one exponential of their logarithms, whose
// derivatives are products with it.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/log_domain.h"
#include "ops/rules/rules.h"
#include "ops/rules/signs.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

NodePtr make(const Op* op, Nodes inputs, Where where) { return make_node(op, std::move(inputs), {}, where); }

// Whether a part of it may overflow, through whatever maps.
bool has_overflow(const NodePtr& x, const Match& m) {
    constexpr std::size_t most = 256;
    std::unordered_set<const Node*> seen;
    Nodes left{x};
    while (!left.empty()) {
        const NodePtr node = left.back();
        left.pop_back();
        const bool is_map = node->op->map || only_moves(node) || is_named(node, {"concat", "cast"});
        if (!is_map || is_constant(node) || !seen.insert(node.get()).second) continue;
        const bool grows = is_named(node, {"exp", "exp2", "expm1", "cosh"}) && may_overflow(node, m);
        if (grows || is_named(node, {"sinh"}) || seen.size() == most) return true;
        left.insert(left.end(), node->inputs.begin(), node->inputs.end());
    }
    return false;
}

// Whether neither is repeated beside the other, whatever lengths turn out to be.
bool has_points_of(const Type& a, const Type& b) {
    return a.dtype == b.dtype && std::equal(a.shape.begin(), a.shape.end(), b.shape.begin(), b.shape.end(),
                                            [](const Int& m, const Int& n) { return m.is(1) == n.is(1); });
}

bool repeats_or_views(const Node& node) {
    return node.op == reshape_op() || node.op == permute_op() || node.op == expand_op();
}

// exp(-log(d)), computed before d is repeated.
NodePtr inverse_of(const NodePtr& d, const Match& m, Where where) {
    if (repeats_or_views(*d) && m.may_look_through(d)) {
        const NodePtr inverse = inverse_of(d->inputs[0], m, where);
        return inverse ? make_node(d->op, {inverse}, d->attributes, where) : nullptr;
    }
    const NodePtr logarithm = log_of_positive(d, m, where);
    return logarithm ? make(exp_op(), {make(neg_op(), {logarithm}, where)}, where) : nullptr;
}

// Of no sum as a whole: a product with the reciprocal of one has rules of its own.
NodePtr reciprocal_of(const Match& m, const Pattern& d) {
    const Node* inner = m[d].get();
    while (repeats_or_views(*inner)) inner = inner->inputs[0].get();
    return inner->op->map && may_overflow(m[d], m) ? inverse_of(m[d], m, m.root()->where) : nullptr;
}

// x / d
NodePtr quotient_of(const Match& m, const Pattern& x, const Pattern& d) {
    const Where where = m.root()->where;
    if (!is_float(m.root()->type.dtype) || !may_overflow(m[d], m)) return nullptr;
    if (has_points_of(m[x]->type, m[d]->type)) {
        const NodePtr above = log_of_positive(m[x], m, where);
        const NodePtr below = above ? log_of_positive(m[d], m, where) : nullptr;
        if (below) return make(exp_op(), {make(sub_op(), {above, below}, where)}, where);
    }
    if (has_overflow(m[x], m)) return nullptr;
    const NodePtr inverse = inverse_of(m[d], m, where);
    return inverse ? make(mul_op(), {m[x], inverse}, where) : nullptr;
}

// 1 / d^c
NodePtr power_of(const Match& m, const Pattern& d, const Pattern& c) {
    const Where where = m.root()->where;
    if (!(m.number(c) < 0) || !may_overflow(m[d], m)) return nullptr;
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
            const bool fits = has_points_of(node->type, product->type) && m.may_look_through(node) &&
                              left.size() + exponents.size() + others.size() < most;
            if (fits && node->op == mul_op()) {
                left.insert(left.end(), {node->inputs[1], node->inputs[0]});
            } else if (fits && node->op == neg_op()) {
                left.push_back(node->inputs[0]);
                negative = !negative;
            } else {
                (fits && node->op == exp_op() ? exponents : others).push_back(node);
            }
        }
    }
};

// exp(x) * y * exp(z) = y * exp(x + z), where 0 * inf would be possible
NodePtr product_of(const Match& m) {
    const NodePtr& root = m.root();
    if (!is_float(root->type.dtype)) return nullptr;
    const Factors factors(root, m);
    if (factors.exponents.size() < 2) return nullptr;
    bool over = false, under = false;
    for (const NodePtr& factor : factors.exponents) {
        over = over || may_overflow(factor, m);
        under = under || may_underflow(factor, m);
    }
    if (!over || !under) return nullptr;
    const auto joined = [&](const Op* op, NodePtr all, const NodePtr& next) {
        return all ? make(op, {std::move(all), next}, root->where) : next;
    };
    NodePtr exponent, product;
    for (const NodePtr& factor : factors.exponents) exponent = joined(add_op(), exponent, factor->inputs[0]);
    for (const NodePtr& factor : factors.others) product = joined(mul_op(), product, factor);
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
