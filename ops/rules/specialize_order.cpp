// Transposes come last: what is computed from a transposed array is computed in the order of the array, whose
// neighbours lie side by side, and is transposed then. So a program gives the same loops whichever of the
// orders its arguments lie in.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <vector>

#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/join.h"
#include "ops/shape/lengths.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

using AxisList = std::vector<std::int64_t>;

const AxisList& axes_of(const NodePtr& permute) { return permute->attributes.get<AxisList>("axes"); }

template <class T>
std::vector<T> in_order(const std::vector<T>& x, const AxisList& axes) {
    std::vector<T> r;
    for (const std::int64_t axis : axes) r.push_back(x[static_cast<std::size_t>(axis)]);
    return r;
}

// The axes of `base` that x has, in the order of x; axes of length 1 do not count.
struct Seen {
    NodePtr base;
    AxisList axes;
};

Seen seen(const NodePtr& x) {
    if (x->op == permute_op()) {
        const NodePtr& y = x->inputs[0];
        const Seen below = seen(y);
        // The place of each axis of y among those that count.
        AxisList places(y->type.shape.size(), -1), axes;
        std::int64_t n = 0;
        for (std::size_t d = 0; d < places.size(); ++d)
            if (!y->type.shape[d].is(1)) places[d] = n++;
        for (const std::int64_t axis : axes_of(x))
            if (const std::int64_t at = places[static_cast<std::size_t>(axis)]; at >= 0)
                axes.push_back(below.axes[static_cast<std::size_t>(at)]);
        return {below.base, axes};
    }
    if (x->op == reshape_op() && without_ones(x->type.shape) == without_ones(x->inputs[0]->type.shape))
        return seen(x->inputs[0]);
    AxisList axes;
    for (std::size_t d = 0; d < x->type.shape.size(); ++d)
        if (!x->type.shape[d].is(1)) axes.push_back(static_cast<std::int64_t>(d));
    return {x, axes};
}

// x with its axes in that order. What x repeats is turned before it is repeated, and axes of length 1 are
// no reason to turn anything.
NodePtr turned(const NodePtr& x, const AxisList& order, Where where) {
    if (std::is_sorted(order.begin(), order.end())) return x;
    const Shape shape = in_order(x->type.shape, order);
    if (x->op == expand_op()) {
        Shape from = x->inputs[0]->type.shape;
        from.insert(from.begin(), shape.size() - from.size(), Int(1));
        return make_expand(turned(make_reshape(x->inputs[0], from, where), order, where), shape, where);
    }
    const NodePtr all = make_permute(x, order, where);
    const auto [base, axes] = seen(all);
    if (std::is_sorted(axes.begin(), axes.end())) return make_reshape(base, shape, where);
    if (x->op != permute_op() && base == x) return all;
    AxisList whole = axes;
    for (std::size_t d = 0; d < base->type.shape.size(); ++d)
        if (base->type.shape[d].is(1)) whole.push_back(static_cast<std::int64_t>(d));
    return make_reshape(make_permute(base, whole, where), shape, where);
}

// The transpose that an operand is of what is computed, null for none: not that of repeated elements.
const AxisList* order_of(const Match& m, const NodePtr& x) {
    const bool is_own = x->op == permute_op() && m.may_look_through(x) && x->inputs[0]->op != expand_op();
    return is_own ? &axes_of(x) : nullptr;
}

// Whether all elements would have to be moved.
bool moves_all(const NodePtr& x, const NodePtr& turned) {
    const NodePtr& view = turned->op == reshape_op() ? turned->inputs[0] : turned;
    return view->op == permute_op() && view->type.rank() > 1 && x->op != permute_op() &&
           without_ones(view->type.shape).size() == without_ones(x->type.shape).size();
}

// The operands in the order of those that are transposed, and that transpose; nothing where they disagree.
struct Operands {
    Nodes inputs;
    AxisList order;
};

std::optional<Operands> before_transpose(const Match& m) {
    Operands r{m.root()->inputs, {}};
    for (const NodePtr& x : r.inputs)
        if (const AxisList* order = order_of(m, x); order && r.order.empty()) r.order = *order;
    if (r.order.empty()) return {};
    const AxisList back = inverse_axes(r.order);
    for (NodePtr& x : r.inputs) {
        if (x->type.rank() == 0) continue;
        if (x->type.shape.size() != back.size()) return {};
        if (x->op == permute_op() && !m.may_look_through(x)) return {};
        NodePtr own = turned(x, back, m.root()->where);
        const bool is_same = x->op == permute_op() && axes_of(x) == r.order;
        if (!is_same && own->op != expand_op() && (x->op == permute_op() || moves_all(x, own))) return {};
        x = std::move(own);
    }
    return r;
}

NodePtr made(const Match& m, Nodes inputs, Attributes attributes, const AxisList& order) {
    const NodePtr& root = m.root();
    return turned(make_node(root->op, std::move(inputs), std::move(attributes), root->where), order,
                  root->where);
}

NodePtr map_then_transpose(const Match& m) {
    if (m.root()->type.rank() < 2) return nullptr;
    std::optional<Operands> r = before_transpose(m);
    return r ? made(m, std::move(r->inputs), m.root()->attributes, r->order) : nullptr;
}

// Along an axis, each with a number for it.
NodePtr along_axis(const Match& m) {
    std::optional<Operands> r = before_transpose(m);
    if (!r) return nullptr;
    Attributes attributes = m.root()->attributes;
    const auto axis = attributes.get<std::int64_t>("axis");
    attributes.set("axis", r->order[static_cast<std::size_t>(axis)]);
    return made(m, std::move(r->inputs), std::move(attributes), r->order);
}

NodePtr reduce_then_transpose(const Match& m) {
    const NodePtr &root = m.root(), &x = root->inputs[0];
    const AxisList* order = reduces(root) ? order_of(m, x) : nullptr;
    if (!order) return nullptr;
    AxisList axes = in_order(*order, root->attributes.get<AxisList>("axes"));
    // Positions are numbered in the order of the axes.
    if (is_named(root, {"argmax", "argmin"}) && axes.size() > 1) return nullptr;
    AxisList left;
    for (const std::int64_t axis : *order)
        if (std::find(axes.begin(), axes.end(), axis) == axes.end()) left.push_back(axis);
    std::sort(axes.begin(), axes.end());
    AxisList numbers = left;
    std::sort(numbers.begin(), numbers.end());
    for (std::int64_t& axis : left) axis = std::find(numbers.begin(), numbers.end(), axis) - numbers.begin();
    return made(m, {x->inputs[0]}, {{"axes", axes}}, left);
}

// What is repeated is turned before, and axes of length 1 are no reason to turn anything.
NodePtr repeat_then_transpose(const Match& m) {
    const NodePtr &root = m.root(), &x = root->inputs[0];
    if (!m.may_look_through(x)) return nullptr;
    NodePtr r = turned(x, axes_of(root), root->where);
    return r->op == permute_op() || (r->op == reshape_op() && r->inputs[0]->op == permute_op()) ? nullptr : r;
}

template <class T>
void turn(Attributes& attributes, const char* name, const AxisList& back) {
    attributes.set(name, in_order(attributes.get<std::vector<T>>(name), back));
}

// Slices and borders have numbers for each axis, flips and concatenations an axis.
NodePtr view_then_transpose(const Match& m) {
    const NodePtr& root = m.root();
    if (is_named(root, {"flip", "concat"})) return along_axis(m);
    const AxisList* order = is_named(root, {"slice", "pad"}) ? order_of(m, root->inputs[0]) : nullptr;
    Attributes attributes = root->attributes;
    if (!order || attributes.find("places")) return nullptr;
    const AxisList back = inverse_axes(*order);
    if (root->op == pad_op()) {
        turn<std::int64_t>(attributes, "before", back);
        turn<std::int64_t>(attributes, "after", back);
    } else {
        turn<Int>(attributes, "start", back);
        turn<Int>(attributes, "count", back);
        turn<std::int64_t>(attributes, "step", back);
    }
    return made(m, {root->inputs[0]->inputs[0]}, std::move(attributes), *order);
}

NodePtr scan_then_transpose(const Match& m) {
    return is_named(m.root(), {"cumsum", "cumprod", "cummax"}) ? along_axis(m) : nullptr;
}

}  // namespace

std::vector<Rule> order_rules() {
    const auto any_of_kind = [](OpKind kind) { return Pattern::of_kind(kind, "of"); };
    return {{"map-then-transpose", any_of_kind(OpKind::map), map_then_transpose},
            {"view-then-transpose", any_of_kind(OpKind::view), view_then_transpose},
            {"scan-then-transpose", any_of_kind(OpKind::reduce), scan_then_transpose},
            {"reduce-then-transpose", any_of_kind(OpKind::reduce), reduce_then_transpose, Tag::exact,
             [](const Match& m) {
                 return !is_named(m.root(), {"sum", "prod"});
             }},
            {"sum-then-transpose", sum(permute(any("x"))), reduce_then_transpose, Tag::reassociates},
            {"prod-then-transpose", prod(permute(any("x"))), reduce_then_transpose, Tag::reassociates},
            {"transpose-of-repeated", permute(any("x")), repeat_then_transpose}};
}

}  // namespace bitale
