// Reductions over the parts of a stack. Each element of a stack chooses among the parts; what is reduced of
// them is computed of the parts themselves.
//
//     max(stack({a, b, c, ...}), {0})       ->  maximum(maximum(a, b), c) ...
//     sum(cast(stack({a, b}), int32), {0})  ->  cast(a, int32) + cast(b, int32)
//
// Kernels write a reduction over few floats out themselves, and a softmax over a stack would compute it
// twice.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/rules/algebra.h"
#include "ops/rules/rules.h"
#include "ops/shape/join.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

using namespace algebra;

namespace {

using AxisList = std::vector<std::int64_t>;

// Parts, of floats and of integers, and operations of all of them.
constexpr std::int64_t fewest_floats = 17, fewest_integers = 2;
constexpr std::size_t most_parts = 64, most_made = 64;
constexpr int most_maps = 6;  // between the reduction and the stack

bool is_stack(const NodePtr& x, std::size_t axis) {
    return x->op == concat_op() &&
           x->attributes.get<std::int64_t>("axis") == static_cast<std::int64_t>(axis) &&
           x->inputs.size() > 1 && x->inputs.size() <= most_parts &&
           std::all_of(x->inputs.begin(), x->inputs.end(),
                       [&](const NodePtr& part) { return part->type.shape[axis].is(1); });
}

// Maps of stacks.
class Stacked {
  public:
    Stacked(const Match& m, std::size_t axis) : m_(m), axis_(axis) {}

    bool is_made_of_stacks(const NodePtr& x, int depth = most_maps) {
        if (depth == 0 || !m_.may_look_through(x)) return false;
        if (is_stack(x, axis_)) return true;
        if (x->op->kind != OpKind::map) return false;
        ++maps_;
        bool found = false;
        for (const NodePtr& input : x->inputs) found = is_made_of_stacks(input, depth - 1) || found;
        return found;
    }
    std::size_t maps() const { return maps_; }

    NodePtr part(const NodePtr& x, std::size_t k, int depth = most_maps) const {
        if (x->type.rank() == 0) return x;
        if (depth > 0 && m_.may_look_through(x)) {
            if (is_stack(x, axis_)) return x->inputs[k];
            if (x->op->kind == OpKind::map) {
                Nodes inputs;
                for (const NodePtr& input : x->inputs) inputs.push_back(part(input, k, depth - 1));
                return make_node(x->op, std::move(inputs), x->attributes, x->where);
            }
        }
        return make_slice(x, static_cast<int>(axis_), Int(static_cast<std::int64_t>(k)), 1, 1, x->where);
    }

  private:
    const Match& m_;
    const std::size_t axis_;
    std::size_t maps_ = 0;
};

const Op* binary_of(const Op* reduction) {
    if (reduction == sum_op()) return add_op();
    if (reduction == prod_op()) return mul_op();
    if (reduction == max_op()) return maximum_op();
    if (reduction == min_op()) return minimum_op();
    return nullptr;
}

NodePtr of_parts(const Match& m) {
    const NodePtr& root = m.root();
    const NodePtr& x = root->inputs[0];
    const Op* const both = binary_of(root->op);
    // Sums of half precision are rounded to it once, at their end.
    if (!both || is_half(x->type.dtype)) return nullptr;
    const std::int64_t fewest = is_float(x->type.dtype) ? fewest_floats : fewest_integers;
    const AxisList axes = root->attributes.get<AxisList>("axes");
    for (const std::int64_t axis : axes) {
        Stacked stacked(m, static_cast<std::size_t>(axis));
        const Int& count = x->type.shape[static_cast<std::size_t>(axis)];
        if (!count.is_constant() || count.constant() < fewest || !stacked.is_made_of_stacks(x)) continue;
        const auto parts = static_cast<std::size_t>(count.constant());
        if (parts * (stacked.maps() + 1) > most_made) continue;
        NodePtr all;
        for (std::size_t k = 0; k < parts; ++k) {
            NodePtr part = stacked.part(x, k);
            if (part->type.dtype != root->type.dtype)
                part = make_node(cast_op(), {part}, {{"dtype", root->type.dtype}}, root->where);
            all = all ? make_node(both, {all, part}, {}, root->where) : part;
        }
        return make_node(root->op, {all}, {{"axes", axes}}, root->where);
    }
    return nullptr;
}

}  // namespace

std::vector<Rule> stack_rules() {
    const Pattern x = any("x");
    return {{"sum-of-stack", sum(x), of_parts, Tag::reassociates},
            {"product-of-stack", prod(x), of_parts, Tag::reassociates},
            {"max-of-stack", max(x), of_parts},
            {"min-of-stack", min(x), of_parts}};
}

}  // namespace bitale
