#include "ops/reduce/kept.h"

#include <algorithm>

#include "graph/walk/interner.h"
#include "ops/autodiff/modifiers.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/gradients.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

using AxisNumbers = std::vector<std::int64_t>;

// The shape before a node was repeated, aligned right to the whole one; nothing if it is no part of that.
std::optional<Shape> before_repeating(const NodePtr& node, const Shape& full) {
    if (node->type.rank() > 0 && node->type.shape != full) return std::nullopt;
    Shape aligned(full.size(), 1);
    const Shape& from = node->op == expand_op() ? node->inputs[0]->type.shape : node->type.shape;
    std::copy(from.rbegin(), from.rend(), aligned.rbegin());
    return aligned;
}

// What only stops gradients, or replaces infinities: where(isinf(x), 0, x).
NodePtr undressed(const NodePtr& node) {
    if (node->op == disconnected_grad_op()) return node->inputs[0];
    const bool finite = node->op == where_op() && node->inputs[0]->op == isinf_op() &&
                        node->inputs[0]->inputs[0] == node->inputs[2];
    return finite ? node->inputs[2] : nullptr;
}

}  // namespace

bool contains(const std::vector<std::int64_t>& axes, std::size_t axis) {
    return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

std::optional<Kept> kept_reduction(const NodePtr& node, const Shape& full, const LookThrough& may) {
    const std::optional<Shape> aligned = before_repeating(node, full);
    if (!aligned) return std::nullopt;
    Kept kept;
    NodePtr inner = node;
    for (;;) {
        if (may && !may(inner)) return std::nullopt;
        if (inner->op == expand_op() && inner != node) return std::nullopt;
        if (inner->op == expand_op() || inner->op == reshape_op()) {
            inner = inner->inputs[0];
        } else if (inner->op == reciprocal_op()) {
            kept.inverted = !kept.inverted;
            inner = inner->inputs[0];
        } else if (const NodePtr bare = undressed(inner)) {
            inner = bare;
        } else {
            break;
        }
    }
    if (!inner->attributes.find("axes") || inner->op->kind == OpKind::view || inner->inputs.empty() ||
        inner->inputs[0]->type.shape != full)
        return std::nullopt;
    const AxisNumbers axes = reduced_axes(*inner);
    for (std::size_t i = 0; i < full.size(); ++i)
        if ((*aligned)[i] != (contains(axes, i) ? Int(1) : full[i])) return std::nullopt;
    kept.reduction = inner;
    return kept;
}

bool is_below_maximum(const NodePtr& x, const AxisNumbers& axes) {
    if (x->op != sub_op()) return false;
    const std::optional<Kept> top = kept_reduction(x->inputs[1], x->type.shape);
    if (!top || top->inverted) return false;
    const Op* op = top->reduction->op;
    if ((op != max_op() && op != supremum_op()) || !same_expression(top->reduction->inputs[0], x->inputs[0]))
        return false;
    const AxisNumbers over = reduced_axes(*top->reduction);
    return std::includes(axes.begin(), axes.end(), over.begin(), over.end());
}

}  // namespace bitale
