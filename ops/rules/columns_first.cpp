// A sum over a short last axis and longer ones before it, as over the pixels of images and their colours, of
// which some operand has one of the two axes alone. Both loops stay apart, and the terms of the inner one
// fill no lanes of registers: every term would wait for the sum of those before. The sum of each column has
// lanes of its own (codegen/schedule/interleaved.h). Axes that can be joined are one by now (join_axes.h).
//
//     sum(sqr(x - bias), {0, 1})  ->  sum(sum(sqr(x - bias), {0}), {0})      x [n, 10], bias [10]
#include <algorithm>
#include <cstdint>
#include <unordered_set>
#include <vector>

#include "graph/rewrite/work.h"
#include "ops/elementwise/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

using AxisList = std::vector<std::int64_t>;

constexpr std::int64_t longest = 31, lanes = 16;  // as codegen/nest/channels.cpp has lanes for
// So many terms of a column are worth a sum more; of a part of longer rows, as windows are, more have to be.
constexpr std::int64_t worth_it = 64, worth_it_of_parts = 512;

// Whether what is computed of it has one of the last two axes and is repeated along the other one, or, where
// that counts, has a part of the last one.
bool keeps_axes_apart(const NodePtr& x, const Shape& shape, bool parts,
                      std::unordered_set<const Node*>& seen) {
    const Shape& own = x->type.shape;
    const std::size_t rank = own.size(), axes = 2;
    if (rank >= axes && own.back().is(1) && !own[rank - axes].is(1)) return true;
    if (rank == 0 || !(own.back() == shape.back())) return false;
    if (rank < axes || (own[rank - axes].is(1) && !shape[shape.size() - axes].is(1))) return true;
    if (!seen.insert(x.get()).second) return false;
    if (x->op == slice_op()) return parts && !(x->inputs[0]->type.shape.back() == own.back());
    return (x->op->kind == OpKind::map || x->op == expand_op()) &&
           std::any_of(x->inputs.begin(), x->inputs.end(),
                       [&](const NodePtr& y) { return keeps_axes_apart(y, shape, parts, seen); });
}

// Lookups and conversions of half precision fill no lanes of several rows: they take longer there than one by
// one.
bool has_slow_lanes(const NodePtr& x, std::unordered_set<const Node*>& seen) {
    if (is_half(x->type.dtype)) return true;
    if (is_named(x, {"gather", "rows", "take_along"})) return true;
    if (x->op->kind != OpKind::map && x->op->kind != OpKind::view) return false;
    return seen.insert(x.get()).second &&
           std::any_of(x->inputs.begin(), x->inputs.end(),
                       [&](const NodePtr& y) { return has_slow_lanes(y, seen); });
}

NodePtr columns_first(const Match& m, const Pattern& x) {
    const NodePtr &root = m.root(), &terms = m[x];
    const Shape& shape = terms->type.shape;
    AxisList rows = root->attributes.get<AxisList>("axes");
    const std::int64_t rank = terms->type.rank();
    // Sums of half precision are rounded to it once, at their end.
    const DType dtype = terms->type.dtype;
    if ((dtype != DType::float32 && dtype != DType::float64) || rows.size() < 2 || rows.back() != rank - 1 ||
        rows[rows.size() - 2] != rank - 2)
        return nullptr;
    const Int& columns = shape.back();
    if (!columns.is_constant() || columns.constant() <= 1 || columns.constant() > longest ||
        columns.constant() % lanes == 0)
        return nullptr;
    rows.pop_back();
    Int count = 1;
    for (const std::int64_t axis : rows) count = count * shape[static_cast<std::size_t>(axis)];
    std::unordered_set<const Node*> seen;
    const std::int64_t most = count.range().high;
    if (most < worth_it || !keeps_axes_apart(terms, shape, most >= worth_it_of_parts, seen)) return nullptr;
    if (seen.clear(); has_slow_lanes(terms, seen)) return nullptr;
    // A product that shares what it loads among results would have as many more of them.
    if (loads_per_point(root) < 1) return nullptr;
    const std::int64_t last = rank - 1 - std::ssize(rows);
    return make_sum(make_node(sum_op(), {terms}, {{"axes", rows}}, root->where), {last}, root->where);
}

}  // namespace

std::vector<Rule> column_rules() {
    const Pattern x = any("x");
    return {{"sum-columns-first", sum(x), [x](const Match& m) { return columns_first(m, x); },
             Tag::reassociates}};
}

}  // namespace bitale
