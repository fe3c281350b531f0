// The first elements in order: sort(x)[0:k] needs the first k places of the order alone, as topk does. Places
// are sorted as 32-bit integers.
#include <cstdint>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/slice.h"
#include "ops/shape/sort.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

// One more than the last place that a slice takes of its last axis; -1 for those from the end.
Int end_of(const Node& slice) {
    const Int& start = slice.attributes.get<std::vector<Int>>("start").back();
    const std::int64_t step = slice.attributes.get<std::vector<std::int64_t>>("step").back();
    const Int& count = slice.type.shape.back();
    return step > 0 ? max(Int(0), start + (count - 1) * step + 1) : Int(-1);
}

NodePtr order_of_first(const Match& m, const Pattern& x, const Pattern& sorted) {
    // Of more of the elements a partial order takes longer than a sort.
    constexpr std::int64_t few = 8, few_of_unknown = 32;
    const NodePtr& slice = m.root();
    const Int &all = m[x]->type.shape.back(), end = end_of(*slice);
    const std::int64_t high = end.range().high,
                       most = all.is_constant() ? all.constant() / few : few_of_unknown;
    if (high < 0 || high > most || end == all || !(m[sorted]->type.shape.back() == all)) return nullptr;
    const Attributes& order = m[sorted]->attributes;
    const NodePtr first =
        make_argsort(m[x], end, order.get<bool>("descending"), order.get<DType>("dtype"), m[sorted]->where);
    return make_node(slice_op(), {first}, slice->attributes, slice->where);
}

// Along another axis rows are transposed before they are sorted and afterwards: the part is taken of rows.
NodePtr taken_before_transpose(const Match& m, const Pattern& sorted) {
    const NodePtr &slice = m.root(), &transpose = slice->inputs[0], &x = m[sorted];
    if ((x->op != take_along_op() && x->op != argsort_op()) || slice->attributes.find("places") ||
        !m.may_look_through(x))
        return nullptr;
    const auto& order = transpose->attributes.get<std::vector<std::int64_t>>("axes");
    const auto& start = slice->attributes.get<std::vector<Int>>("start");
    const auto& step = slice->attributes.get<std::vector<std::int64_t>>("step");
    NodePtr part = x;
    for (std::size_t d = 0; d < order.size(); ++d)
        part = make_slice(part, static_cast<int>(order[d]), start[d], slice->type.shape[d], step[d],
                          slice->where);
    return make_permute(part, order, slice->where);
}

// Rows stay whole: x is read by rows.
NodePtr taken_at_first(const Match& m, const Pattern& x, const Pattern& order) {
    const NodePtr& slice = m.root();
    const Shape& whole = slice->inputs[0]->type.shape;
    for (std::size_t d = 0; d + 1 < whole.size(); ++d)
        if (!(slice->type.shape[d] == whole[d]) ||
            slice->attributes.get<std::vector<std::int64_t>>("step")[d] != 1)
            return nullptr;
    const NodePtr places = make_node(slice_op(), {m[order]}, slice->attributes, slice->where);
    return make_node(take_along_op(), {m[x], places}, {{"permutation", false}}, slice->where);
}

// Ranks: argsort(argsort(x)).
NodePtr order_of_places(const Match& m, const Pattern& places) {
    const NodePtr& inner = m[places];
    if (inner->type.dtype != DType::int64 || inner->type.shape.back().range().high > INT32_MAX)
        return nullptr;
    const NodePtr narrow = make_node(cast_op(), {inner}, {{"dtype", DType::int32}}, inner->where);
    return make_node(argsort_op(), {narrow}, m.root()->attributes, m.root()->where);
}

}  // namespace

std::vector<Rule> sorted_rules() {
    const Pattern x = any("x"), order = any("order");
    const Pattern sorted = Pattern::apply("argsort", {x}), taken = Pattern::apply("take_along", {x, order});
    return {
        {"slice-argsort", slice(sorted), [=](const Match& m) { return order_of_first(m, x, sorted); }},
        {"slice-transpose-of-sorted", slice(permute(x)),
         [=](const Match& m) { return taken_before_transpose(m, x); }},
        {"argsort-of-argsort", Pattern::apply("argsort", {sorted}),
         [=](const Match& m) { return order_of_places(m, sorted); }},
        {"slice-take-along", slice(taken), [=](const Match& m) { return taken_at_first(m, x, order); }},
    };
}

}  // namespace bitale
