#include "ops/autodiff/masks.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graph/rewrite/pattern.h"
#include "graph/walk/interner.h"
#include "ops/autodiff/modifiers.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/gather.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using Sides = std::vector<Side>;

NodePtr as_condition(const Side& side, Where where) {
    if (side.wanted) return side.condition;
    return make_node(logical_not_op(), {side.condition}, {}, where);
}

bool same(const Side& a, const Side& b) {
    return a.wanted == b.wanted && same_expression(a.condition, b.condition);
}
bool opposite(const Side& a, const Side& b) {
    return a.wanted != b.wanted && same_expression(a.condition, b.condition);
}
bool contains(const Sides& sides, const Side& side) {
    return std::any_of(sides.begin(), sides.end(), [&](const Side& s) { return same(s, side); });
}
void append(Sides& sides, const Sides& more) {
    for (const Side& side : more)
        if (!contains(sides, side)) sides.push_back(side);
}

// A number other than zero that no multiplication or division by it makes infinite or NaN; or a length.
bool is_ordinary(const NodePtr& node) {
    const NodePtr& x = node->op == cast_op() ? node->inputs[0] : node;
    if (x->op->name == "length") return true;
    const std::optional<Array> value = uniform_value(node->op == expand_op() ? node->inputs[0] : node);
    return value && std::isnormal(value->at(0));
}

// A product of which both factors are repeated, as those of matrices that matmul adds up: zeros of the
// cotangent are multiplied with the other factor, as in dot, and no choice is made for each product.
bool multiplies_repeated(const Node& node) {
    return node.op == mul_op() && std::all_of(node.inputs.begin(), node.inputs.end(),
                                              [](const NodePtr& x) { return x->op == expand_op(); });
}

}  // namespace

bool is_zero(const NodePtr& node) {
    const NodePtr& x = node->op == expand_op() ? node->inputs[0] : node;
    return is_constant(x) && constant_value(x).size() == 1 && constant_value(x).at(0) == 0;
}

NodePtr Masks::selected(const NodePtr& value, const Side& side) {
    NodePtr& known = selections_[{value.get(), side.condition.get(), side.wanted}];
    if (known) return known;
    const Expr zero(0.0, side.where), condition = wrap(side.condition), x = wrap(value);
    const Expr chosen = side.wanted ? elementwise(where_op(), {condition, x, zero}, side.where)
                                    : elementwise(where_op(), {condition, zero, x}, side.where);
    known = chosen.node();
    if (side.op && known->op == where_op())
        const_cast<Node*>(known.get())->title = "gradient of " + side.op->name;  // not shared yet
    settle_(known, side.where);
    return known;
}

// Takes where(c, x, 0) and where(c, 0, x) off, and notes c: of nested ones the inner first.
NodePtr Masks::without_selections(NodePtr part, Sides& sides, const Node& node) {
    Sides outer;
    while (part->op == where_op()) {
        const bool wanted = is_zero(part->inputs[2]);
        if (!wanted && !is_zero(part->inputs[1])) break;
        const NodePtr& value = part->inputs[wanted ? 1 : 2];
        if (!same_points(value->type.shape, part->type.shape)) break;
        outer.push_back({of_values(part->inputs[0]), wanted, node.where, node.op});
        part = value;
    }
    std::reverse(outer.begin(), outer.end());
    append(sides, outer);
    return part;
}

NodePtr Masks::apply(Flow& flow, Where where) {
    for (const Side& side : flow.pending) flow.value = selected(flow.value, side);
    append(flow.known, std::exchange(flow.pending, {}));
    bound(flow.known, where);
    return flow.value;
}

// Whether the part is zero wherever `from` is, whatever the values of forward nodes.
bool Masks::is_zero_with(const NodePtr& part, const NodePtr& from) const {
    if (part == from || is_zero(part)) return true;
    if (forward_.contains(part.get())) return false;
    const Nodes& in = part->inputs;
    const auto zero = [&](std::size_t i) { return is_zero_with(in[i], from); };
    const Op* op = part->op;
    if (op == neg_op() || op == cast_op() || op == sum_op() || op == scatter_op() || op->kind == OpKind::view)
        return !in.empty() && zero(0);
    if (op == add_op() || op == sub_op()) return zero(0) && zero(1);
    if (op == where_op()) return zero(1) && zero(2);
    if (op == mul_op()) return (is_ordinary(in[1]) && zero(0)) || (is_ordinary(in[0]) && zero(1));
    if (op == div_op()) return is_ordinary(in[1]) && zero(0);
    return false;
}

// The part with an indicator, 0 or 1, in place of `from`: positive where the part may be other than zero.
// Null if it depends on `from` in a way that does not tell.
NodePtr Masks::moved(const NodePtr& part, const NodePtr& from, const NodePtr& indicator) const {
    if (part == from) return indicator;
    if (is_zero(part)) return part;
    if (forward_.contains(part.get())) return nullptr;
    const Op* op = part->op;
    const auto rebuilt = [&](std::initializer_list<std::size_t> operands) -> NodePtr {
        Nodes inputs = part->inputs;
        for (const std::size_t i : operands) {
            inputs[i] = moved(inputs[i], from, indicator);
            if (!inputs[i]) return nullptr;
        }
        return make_node(op == sub_op() ? add_op() : op, std::move(inputs), part->attributes, part->where);
    };
    if (op == neg_op()) return moved(part->inputs[0], from, indicator);
    if (op == cast_op() || op == sum_op() || op == scatter_op() ||
        (op->kind == OpKind::view && !part->inputs.empty()))
        return rebuilt({0});
    if (op == add_op() || op == sub_op()) return rebuilt({0, 1});
    if (op == where_op()) return rebuilt({1, 2});
    if ((op == mul_op() || op == div_op()) && is_ordinary(part->inputs[1]) &&
        same_points(part->inputs[0]->type.shape, part->type.shape))
        return moved(part->inputs[0], from, indicator);
    if (op == mul_op() && is_ordinary(part->inputs[0]) &&
        same_points(part->inputs[1]->type.shape, part->type.shape))
        return moved(part->inputs[1], from, indicator);
    return nullptr;
}

// The condition without cotangents in it, so that it is the same for every cotangent, and exact.
NodePtr Masks::of_values(const NodePtr& condition) {
    const Op* op = condition->op;
    if (op == flows_op()) return condition->inputs[1];
    if (op != logical_and_op() && op != logical_or_op() && op != logical_not_op()) return condition;
    NodePtr& known = of_values_[condition];
    if (known) return known;
    Nodes inputs;
    for (const NodePtr& input : condition->inputs) inputs.push_back(of_values(input));
    known = inputs == condition->inputs ? condition : make_node(op, std::move(inputs), {}, condition->where);
    return known;
}

// Whether a sum is on the way from `from` to the part.
bool Masks::adds(const NodePtr& part, const NodePtr& from) const {
    if (part == from || forward_.contains(part.get())) return false;
    return part->op == sum_op() || part->op == scatter_op() ||
           std::any_of(part->inputs.begin(), part->inputs.end(),
                       [&](const NodePtr& x) { return adds(x, from); });
}

// Sides grow with every selection on the way: beyond a few, the oldest two become one condition.
void Masks::bound(Sides& sides, Where where) {
    constexpr std::size_t most = 4;
    while (sides.size() > most) {
        const Nodes both{as_condition(sides[0], where), as_condition(sides[1], where)};
        sides.erase(sides.begin());
        sides[0] = {make_node(logical_and_op(), both, {}, where), true, where};
    }
}

Flow Masks::through_map(const Flow& flow, const NodePtr& part, const NodePtr& node) {
    if (part->type.rank() < node->type.rank()) {
        // A scalar operand was repeated: its cotangent is a sum of what the sides let pass.
        if (is_zero(part)) return {part};
        const NodePtr all = part->op == sum_op() ? part->inputs[0] : nullptr;
        BITALE_CHECK(all && all->type.rank() == node->type.rank(),
                     "the gradient of " + node->op->name + " for a scalar operand is no sum");
        Flow each = through_map(flow, all, node);
        settle_(each.value, node->where);
        const NodePtr value = apply(each, node->where);
        const NodePtr sum = value == all ? part : make_node(sum_op(), {value}, part->attributes, part->where);
        return through({value, {}, each.known}, sum, node);
    }
    Flow below{nullptr, flow.pending, {}};
    below.value = without_selections(part, below.pending, *node);
    if (is_zero_with(below.value, flow.value))
        append(below.known, flow.known);
    else if (!multiplies_repeated(*node))
        append(below.pending, flow.known);
    bound(below.pending, node->where);
    return below;
}

Flow Masks::through(const Flow& flow, const NodePtr& part, const NodePtr& node) {
    const Where where = node->where;
    Flow below;
    below.value = without_selections(part, below.pending, *node);
    NodePtr all;
    for (const Side& side : flow.known) {
        if (side.condition->type.rank() == 0 && flow.value->type.rank() > 0) continue;
        const DType dtype = flow.value->type.dtype;
        const NodePtr condition = as_condition(side, where), exact = of_values(condition);
        const NodePtr indicator = make_node(cast_op(), {exact}, {{"dtype", dtype}}, where);
        const NodePtr there = moved(part, flow.value, indicator);
        if (!there || !same_points(there->type.shape, part->type.shape)) continue;
        const NodePtr zero = scalar_node(there->type.dtype, 0, where);
        const NodePtr any = make_node(neq_op(), {there, zero}, {}, where);
        if (!adds(part, flow.value) && exact == condition)
            below.known.push_back({any, true, where});
        else
            all = all ? make_node(logical_and_op(), {all, any}, {}, where) : any;
    }
    // Sums of indicators are as dear as the sum of the cotangents, which says the same.
    if (all) below.known.push_back({make_node(flows_op(), {part, all}, {}, where), true, where});
    return below;
}

Flow Masks::total(std::vector<Flow> parts, Where where) {
    if (parts.size() == 1) return std::move(parts[0]);
    // What all parts have in common is left to what is below; the rest of each is applied.
    const auto all_of = [](const Flow& part) {
        Sides sides = part.pending;
        append(sides, part.known);
        return sides;
    };
    Sides common;
    for (const Side& side : all_of(parts[0]))
        if (std::all_of(parts.begin(), parts.end(),
                        [&](const Flow& part) { return contains(all_of(part), side); }))
            common.push_back(side);
    Flow sum;
    std::vector<Sides> own;
    for (Flow& part : parts) {
        Sides rest = all_of(part);
        std::erase_if(rest, [&](const Side& side) { return contains(common, side); });
        own.push_back(std::move(rest));
        for (const Side& side : part.pending) {
            if (!contains(common, side))
                part.value = selected(part.value, side);
            else if (!contains(sum.pending, side))
                sum.pending.push_back(side);
        }
    }
    for (const Side& side : common)
        if (!contains(sum.pending, side)) sum.known.push_back(side);

    // Beyond that, the sum is zero where every part is, unless they are the two sides of one condition.
    bool everywhere = false;
    for (const Sides& a : own) {
        everywhere |= a.empty();
        for (const Sides& b : own) everywhere |= a.size() == 1 && b.size() == 1 && opposite(a[0], b[0]);
    }
    if (!everywhere) {
        NodePtr any;
        for (const Sides& sides : own) {
            NodePtr each;
            for (const Side& side : sides) {
                const NodePtr c = as_condition(side, where);
                each = each ? make_node(logical_and_op(), {each, c}, {}, where) : c;
            }
            any = any ? make_node(logical_or_op(), {any, each}, {}, where) : each;
        }
        sum.known.push_back({any, true, where});
    }

    Expr total = wrap(parts[0].value);
    for (std::size_t i = 1; i < parts.size(); ++i)
        total = elementwise(add_op(), {total, wrap(parts[i].value)}, where);
    sum.value = total.node();
    return sum;
}

}  // namespace bitale
