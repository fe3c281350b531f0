// Gradients of neighbouring slices, added up, are the gradient of one slice: of all elements, the
// concatenation of the parts. A sum of n places among zeros asks for each element in which of the n it lies.
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/join.h"
#include "ops/shape/slice.h"

namespace bitale {

using namespace algebra;

namespace {

// Both parts, which are of this type, as one; null where they are no neighbours.
NodePtr joined(const NodePtr& first, const NodePtr& second, const Type& type, Where where) {
    if (first->type != second->type || first->type != type) return nullptr;
    const std::optional<Cut> a = cut_of(*first), b = cut_of(*second);
    if (!a || !b || a->axis != b->axis) return nullptr;
    const bool in_order = a->start + a->count == b->start;
    if (!in_order && !(b->start + b->count == a->start)) return nullptr;
    const auto axis = static_cast<std::int64_t>(a->axis);
    const NodePtr &low = (in_order ? first : second)->inputs[0],
                  &high = (in_order ? second : first)->inputs[0];
    const NodePtr parts = make_node(concat_op(), {low, high}, {{"axis", axis}}, where);
    if (parts->type.shape == first->type.shape) return parts;
    Attributes attributes = first->attributes;
    std::vector<Int> start = attributes.get<std::vector<Int>>("start");
    start[a->axis] = in_order ? a->start : b->start;
    attributes.set("start", std::move(start));
    return make_node(place_slice_op(), {parts}, attributes, where);
}

// Of an op for which zero is neutral; `beside`: with a further operand between the two.
std::vector<Rule> of_op(const char* op, Tag tag) {
    const Pattern x = any("x"), first = place_slice(any("a")), second = place_slice(any("b"));
    const Pattern inner = Pattern::apply(op, {x, first});
    const std::string name = std::string("places-") + op;
    return {
        {name, Pattern::apply(op, {first, second}),
         [=](const Match& m) { return joined(m[first], m[second], m.root()->type, m.root()->where); }, tag},
        {name + "-beside", Pattern::apply(op, {inner, second}),
         [=](const Match& m) -> NodePtr {
             const Where where = m.root()->where;
             const NodePtr both = joined(m[first], m[second], m.root()->type, where);
             return both ? make_node(m.root()->op, {m[x], both}, {}, where) : nullptr;
         },
         tag},
    };
}

}  // namespace

std::vector<Rule> place_rules() {
    const Pattern x = any("x"), placed = place_slice(x);
    std::vector<Rule> rules = of_op("add", Tag::reassociates);
    for (Rule& rule : of_op("logical_or", Tag::exact)) rules.push_back(std::move(rule));
    rules.push_back(
        {"places-all", placed, x, Tag::exact, [](const Match& m) { return takes_all(*m.root()); }});
    rules.push_back({"places-not-zero", neq(placed, 0), place_slice(neq(x, 0)).like(placed)});
    return rules;
}

}  // namespace bitale
