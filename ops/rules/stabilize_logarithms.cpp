// Logarithms, quotients and crossentropies of what overflows or underflows: by way of its logarithm.
#include <cmath>
#include <utility>

#include "graph/walk/interner.h"
#include "ops/autodiff/modifiers.h"
#include "ops/dsl/compose.h"
#include "ops/nn/pick.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/log_domain.h"
#include "ops/rules/rules.h"

namespace bitale {

using namespace algebra;

namespace {

// The exponents u of a sum of terms exp(u), a positive number c counting as exp(log(c)); empty for another
// sum.
Nodes exponents_of(const NodePtr& total, const Match& m) {
    constexpr std::size_t most = 32;
    Nodes exponents, left{total};
    while (!left.empty()) {
        const NodePtr node = left.back();
        left.pop_back();
        if (!m.may_look_through(node) || exponents.size() + left.size() > most) return {};
        const std::optional<Array> number = uniform_value(node);
        if (node->op == add_op())
            left.insert(left.end(), {node->inputs[1], node->inputs[0]});
        else if (node->op == exp_op())
            exponents.push_back(node->inputs[0]);
        else if (number && number->at(0) > 0)
            exponents.push_back(
                make_constant(Array(std::log(number->at(0))).as(node->type.dtype), node->where));
        else
            return {};
    }
    return exponents;
}

// Whether x is u - maximum(u, ...), which is shifted already.
bool is_below_others(const NodePtr& x) {
    if (x->op != sub_op()) return false;
    Nodes left{x->inputs[1]};
    while (!left.empty()) {
        const NodePtr node = left.back();
        left.pop_back();
        if (node->op == maximum_op() || node->op == disconnected_grad_op())
            left.insert(left.end(), node->inputs.begin(), node->inputs.end());
        else if (same_expression(node, x->inputs[0]))
            return true;
    }
    return false;
}

// exp(x) / (exp(x) + exp(y)) = sigmoid(x - y); with more terms, each less the largest exponent.
NodePtr share_of_exponentials(const Match& m, const Pattern& x, const Pattern& total) {
    Nodes exponents = exponents_of(m[total], m);
    if (exponents.size() < 2 || is_below_others(m[x])) return nullptr;
    bool found = false;
    for (NodePtr& exponent : exponents) {
        if (exponent->type.rank() > m[x]->type.rank()) return nullptr;
        if (found || !same_expression(exponent, m[x])) continue;
        std::swap(exponent, exponents.front());
        found = true;
    }
    if (!found) return nullptr;
    const Where where = m.root()->where;
    const Term own(m[x], where);
    if (exponents.size() == 2) return map(sigmoid_op(), own - Term(exponents[1], where)).node();
    Term top = own;
    for (std::size_t i = 1; i < exponents.size(); ++i)
        top = compose(maximum_op(), {top.x, Expr(exponents[i])}, where);
    const Term fixed(make_node(disconnected_grad_op(), {top.node()}, {}, where), where);
    const Term share = exp(own - fixed);
    Term sum = share;
    for (std::size_t i = 1; i < exponents.size(); ++i) sum = sum + exp(Term(exponents[i], where) - fixed);
    return (share / sum).node();
}

// -log(p[label])
NodePtr of_labels(const Match& m, const Pattern& p, const Pattern& y) {
    const Where where = m.root()->where;
    const NodePtr logarithms = log_of(m[p], m, where);
    return logarithms ? (-pick(Term(logarithms, where), m[y])).node() : nullptr;
}

// -sum(t * log(p)), where 0 * log(0) is 0
NodePtr of_distributions(const Match& m, const Pattern& p, const Pattern& target) {
    const Where where = m.root()->where;
    const NodePtr logarithms = log_of(m[p], m, where);
    if (!logarithms) return nullptr;
    const Term t(m[target], where), terms = zero_where(t, 0, t * Term(logarithms, where));
    return (-Term(make_sum(terms.node(), {1}, where), where)).node();
}

NodePtr of_coins(const Match& m, const Pattern& p, const Pattern& target) {
    const Where where = m.root()->where;
    const NodePtr heads = log_of(m[p], m, where), tails = heads ? log_of_rest(m[p], m, where) : nullptr;
    if (!tails) return nullptr;
    const Term t(m[target], where);
    return (-(zero_where(t, 0, t * Term(heads, where)) + zero_where(t, 1, (1 - t) * Term(tails, where))))
        .node();
}

constexpr double lowest_exponent = -50;  // exp(-50) is nothing beside 1, in float64 also

}  // namespace

std::vector<Rule> stabilize_logarithm_rules() {
    const Pattern x = any("x"), y = any("y"), d = any("d"), e = exp(x).again();
    const auto t = Tag::stabilizes;
    const auto logarithm = [=](const Match& m) { return log_of(m[x], m, m.root()->where); };
    const auto of_more_than_one = [=](const Match& m) -> NodePtr {
        const Where where = m.root()->where;
        const NodePtr inner = may_overflow(m[x], m) ? log_of_positive(m[x], m, where) : nullptr;
        return inner ? make_node(softplus_op(), {inner}, {}, where) : nullptr;
    };
    const auto of_base = [=](double base) -> Replace {
        return [=](const Match& m) -> NodePtr {
            const NodePtr natural = logarithm(m);
            return natural ? (Term(natural, m.root()->where) * (1 / std::log(base))).node() : nullptr;
        };
    };
    const auto of_rest = [=](const Match& m) { return log_of_rest(m[x], m, m.root()->where); };
    return {
        {"logarithm", log(x), logarithm, t},
        {"logarithm-of-one-more", log1p(x), of_more_than_one, t},
        {"logarithm-of-rest", log1p((-x).again()), of_rest, t},
        {"logarithm-of-base-2", log2(x), of_base(2), t},
        {"logarithm-of-base-10", log10(x), of_base(10), t},
        {"log1mexp", log((-expm1(x)).again()), log1mexp(x), t},
        // log(1 - exp(-exp(x))) is x where exp(x) underflows.
        {"log1mexp-of-exp", log1mexp((-exp(x).again()).again()),
         log1mexp(-exp(maximum(x, lowest_exponent))) + minimum(0, x - lowest_exponent), t,
         [x](const Match& m) { return m[x]->op != maximum_op(); }},
        {"log-expm1", log(expm1(x).again()), x + log1mexp(-x), t},
        {"logaddexp-one", logaddexp(x, 0), softplus(x), t},
        {"tanh-difference", sigmoid(x).again() - sigmoid(-x).again(), tanh(x * 0.5), t},
        {"sigmoid-quotient", e / d, [=](const Match& m) { return share_of_exponentials(m, x, d); }, t},
        {"sigmoid-product", e * sigmoid(-x).again(), sigmoid(x), t},
        {"tanh-quotient", (e - exp(-x).again()).again() / (e + exp(-x).again()).again(), tanh(x), t},
        {"tanh-expm1", expm1(x).again() / (e + 1).again(), tanh(x * 0.5), t},
        {"crossentropy-labels", crossentropy_labels(x, y), [=](const Match& m) { return of_labels(m, x, y); },
         t},
        {"crossentropy-dense", crossentropy_dense(x, y),
         [=](const Match& m) { return of_distributions(m, x, y); }, t},
        {"binary-crossentropy", binary_crossentropy(x, y), [=](const Match& m) { return of_coins(m, x, y); },
         t},
    };
}

}  // namespace bitale
