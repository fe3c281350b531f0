// Reductions: over nothing, over axes of length 1, and one after another.
#include <algorithm>

#include "graph/rewrite/work.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/integer_sum.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

using AxisList = std::vector<std::int64_t>;

const AxisList& axes_of(const Node& reduce) { return reduce.attributes.get<AxisList>("axes"); }

// Axes of length 1 need no loop; without any left the value is the element itself.
NodePtr over_long_axes(const Match& m, const Pattern& x) {
    const NodePtr &node = m.root(), &operand = m[x];
    const Shape& shape = operand->type.shape;
    AxisList left;
    Shape rest;
    for (std::size_t i = 0, shift = 0; i < shape.size(); ++i) {
        const auto axis = static_cast<std::int64_t>(i);
        const bool reduced = std::binary_search(axes_of(*node).begin(), axes_of(*node).end(), axis);
        if (reduced && shape[i].is(1)) {
            ++shift;
            continue;
        }
        if (reduced) left.push_back(axis - static_cast<std::int64_t>(shift));
        rest.push_back(shape[i]);
    }
    if (left.size() == axes_of(*node).size() && !left.empty()) return nullptr;
    const NodePtr flat = make_reshape(operand, rest, node->where);
    if (!left.empty()) return make_node(node->op, {flat}, {{"axes", left}}, node->where);
    if (flat->type.dtype == node->type.dtype) return flat;
    return make_node(cast_op(), {flat}, {{"dtype", node->type.dtype}}, node->where);
}

// Reducing twice is reducing once over both sets of axes.
NodePtr over_both(const Match& m, const Pattern& x, const Pattern& inner) {
    const AxisList& first = axes_of(*m[inner]);
    AxisList kept, axes = first;
    for (std::int64_t axis = 0; axis < m[x]->type.rank(); ++axis)
        if (!std::binary_search(first.begin(), first.end(), axis)) kept.push_back(axis);
    for (const std::int64_t axis : axes_of(*m.root())) axes.push_back(kept[static_cast<std::size_t>(axis)]);
    std::sort(axes.begin(), axes.end());
    return make_node(m.root()->op, {m[x]}, {{"axes", axes}}, m.root()->where);
}

// A product of matrices uses what it loads for many results: with another sum over its rows or columns it is
// none any more, and takes several times as long.
bool loads_no_more(const Match& m, const Pattern& x, const Pattern& inner) {
    const double merged = loads_per_point(over_both(m, x, inner));
    return merged <= 1 || merged <= 2 * loads_per_point(m[inner]);
}

// The sum of small integers is exact in any order, and takes whole vectors of bytes at once: what scales and
// shifts them does so once for each result.
NodePtr of_integers_alone(const Match& m, bool by_variable) {
    const NodePtr& root = m.root();
    const std::optional<IntegerSum> terms = IntegerSum::of(
        *root, reduced_count(*root), [&](const NodePtr& node) { return m.may_look_through(node); });
    if (!terms || terms->is_plain() || terms->has_variable() != by_variable) return nullptr;
    const NodePtr numbers =
        make_node(cast_op(), {terms->integers()}, {{"dtype", terms->wide()}}, root->where);
    const NodePtr total = make_node(sum_op(), {numbers}, root->attributes, root->where);
    return terms->value(total);
}

}  // namespace

std::vector<Rule> reduce_rules() {
    std::vector<Rule> rules;
    const Pattern x = any("x");
    // Before axes of length 1 go, which puts a reshape in between.
    const auto scaled = [](bool by_variable) {
        return [by_variable](const Match& m) { return of_integers_alone(m, by_variable); };
    };
    rules.push_back({"sum-affine", sum(x), scaled(false), Tag::reassociates});
    rules.push_back({"sum-scaled", sum(x), scaled(true), Tag::skips_zeros});
    for (const char* op : {"sum", "prod", "max", "min", "supremum"}) {
        const bool rounds = op == std::string("sum") || op == std::string("prod");
        const Pattern once = Pattern::apply(op, {x}), twice = Pattern::apply(op, {once});
        // A sum begins with 0: of the single element -0 it is 0.
        rules.push_back({std::string(op) + "-short-axes", once,
                         [x](const Match& m) { return over_long_axes(m, x); },
                         rounds ? Tag::reassociates : Tag::exact});
        rules.push_back({std::string(op) + "-" + op, twice,
                         [=](const Match& m) { return over_both(m, x, once); },
                         rounds ? Tag::reassociates : Tag::exact,
                         [=](const Match& m) { return loads_no_more(m, x, once); }});
    }
    return rules;
}

}  // namespace bitale
