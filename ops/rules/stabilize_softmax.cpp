// Softmax, its logarithm and logarithms of sums of exponentials, however they are written.
#include <algorithm>
#include <cmath>

#include "graph/walk/interner.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/nn/logsumexp.h"
#include "ops/nn/softmax.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/kept.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

using Axes = std::vector<std::int64_t>;

bool has_elements(const Node& reduction) {
    const Shape& shape = reduction.inputs[0]->type.shape;
    const Axes axes = reduced_axes(reduction);
    return !axes.empty() && std::none_of(axes.begin(), axes.end(), [&](std::int64_t axis) {
        return shape[static_cast<std::size_t>(axis)].is(0);
    });
}

// The reduction that d repeats beside elements of that shape.
std::optional<Kept> reduction_beside(const Match& m, const Shape& shape, const Pattern& d) {
    std::optional<Kept> kept =
        kept_reduction(m[d], shape, [&](const NodePtr& node) { return m.may_look_through(node); });
    if (kept && !has_elements(*kept->reduction)) kept.reset();
    return kept;
}

// exp(x) / sum(exp(x)), and as a product with the reciprocal.
Replace softmax_of_quotient(const Pattern& x, const Pattern& d, bool inverted) {
    return [=](const Match& m) -> NodePtr {
        const std::optional<Kept> total = reduction_beside(m, m[x]->type.shape, d);
        if (!total || total->inverted != inverted || total->reduction->op != sum_op()) return nullptr;
        const NodePtr& terms = total->reduction->inputs[0];
        if (!m.may_look_through(terms) || terms->op != exp_op() || !same_expression(terms->inputs[0], m[x]))
            return nullptr;
        return softmax_over(softmax_op(), m[x], reduced_axes(*total->reduction), m.root()->where);
    };
}

// Shares of what a mask leaves. Where it leaves nothing of a row, both are NaN.
Replace softmax_of_masked(const Pattern& c, const Pattern& x, const Pattern& d) {
    return [=](const Match& m) -> NodePtr {
        const NodePtr& root = m.root();
        const std::optional<Kept> total = reduction_beside(m, root->type.shape, d);
        if (!total || total->inverted || total->reduction->op != sum_op()) return nullptr;
        const NodePtr& terms = total->reduction->inputs[0];
        if (!m.may_look_through(terms) || !same_expression(terms, root->inputs[0])) return nullptr;
        const Expr none = literal(-INFINITY, root->where);
        const Term left = compose(where_op(), {wrap(m[c]), wrap(m[x]), none}, root->where);
        if (left.node()->type != root->type) return nullptr;
        return softmax_over(softmax_op(), left.node(), reduced_axes(*total->reduction), root->where);
    };
}

// x - logsumexp(x)
Replace log_softmax_of_difference(const Pattern& x, const Pattern& d) {
    return [=](const Match& m) -> NodePtr {
        const std::optional<Kept> total = reduction_beside(m, m[x]->type.shape, d);
        if (!total || total->inverted || total->reduction->op != logsumexp_op() ||
            !same_expression(total->reduction->inputs[0], m[x]))
            return nullptr;
        return softmax_over(log_softmax_op(), m[x], reduced_axes(*total->reduction), m.root()->where);
    };
}

// softmax(x - max(x)) = softmax(x), which subtracts the maximum itself.
Replace without_shift(const Pattern& x) {
    return [=](const Match& m) -> NodePtr {
        const Node& node = *m.root();
        const Axes axis{node.attributes.get<std::int64_t>("axis")};
        if (!is_below_maximum(node.inputs[0], axis)) return nullptr;
        return make_node(node.op, {m[x]}, node.attributes, node.where);
    };
}

// sqrt(sum(sqr(x))), whose derivative at 0 is none, while that of the norm is chosen to be 0; with keepdims,
// and of a mean.
NodePtr norm_of_root(const Match& m, const Pattern& y) {
    const NodePtr& root = m.root();
    NodePtr inner = m[y];
    if (inner->op == reshape_op() && m.may_look_through(inner)) inner = inner->inputs[0];
    const bool is_mean = inner->op == mean_op();
    if ((inner->op != sum_op() && !is_mean) || !m.may_look_through(inner) || !has_elements(*inner) ||
        (inner->type.dtype != float32 && inner->type.dtype != float64))
        return nullptr;
    const NodePtr& squares = inner->inputs[0];
    if (squares->op != sqr_op() || !m.may_look_through(squares)) return nullptr;
    NodePtr norm = make_node(norm_op(), {squares->inputs[0]}, {{"axes", reduced_axes(*inner)}}, root->where);
    if (is_mean) {
        const NodePtr count = number_of(reduced_count(*inner), inner->type.dtype, root->where);
        norm = make_node(div_op(), {norm, make_node(sqrt_op(), {count}, {}, root->where)}, {}, root->where);
    }
    return make_reshape(norm, root->type.shape, root->where);
}

}  // namespace

std::vector<Rule> stabilize_softmax_rules() {
    const Pattern x = any("x"), c = any("c"), d = any("d");
    const auto t = Tag::stabilizes;
    return {
        {"log-softmax", log(softmax(x).again()), log_softmax(x), t},
        {"exp-log-softmax", exp(log_softmax(x)), softmax(x), t},
        {"softmax-quotient", exp(x).again() / d, softmax_of_quotient(x, d, false), t},
        {"softmax-product", exp(x).again() * d, softmax_of_quotient(x, d, true), t},
        {"softmax-masked", where(c, exp(x).again(), 0).again() / d, softmax_of_masked(c, x, d), t},
        {"log-softmax-difference", x - d, log_softmax_of_difference(x, d), t},
        {"softmax-shift", softmax((x - c).again()), without_shift(x), t},
        {"log-softmax-shift", log_softmax((x - c).again()), without_shift(x), t},
        {"norm", sqrt(c), [c](const Match& m) { return norm_of_root(m, c); }, t},
    };
}

}  // namespace bitale
