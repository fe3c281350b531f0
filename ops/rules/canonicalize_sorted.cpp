// The first elements in order: sort(x)[0:k] needs the first k places of the order alone, as topk does.
#include <cstdint>
#include <vector>

#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/slice.h"
#include "ops/shape/sort.h"

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

}  // namespace

std::vector<Rule> sorted_rules() {
    const Pattern x = any("x"), order = any("order");
    const Pattern sorted = Pattern::apply("argsort", {x}), taken = Pattern::apply("take_along", {x, order});
    return {
        {"slice-argsort", slice(sorted), [=](const Match& m) { return order_of_first(m, x, sorted); }},
        {"slice-take-along", slice(taken), [=](const Match& m) { return taken_at_first(m, x, order); }},
    };
}

}  // namespace bitale
