#include "ops/train/lazy_rows.h"

#include <vector>

#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/gather.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// The scatters that a gradient is the sum of, in any dtype; none where anything else is in it.
Nodes scatters_of(const NodePtr& gradient) {
    Nodes found, stack{gradient};
    while (!stack.empty()) {
        const NodePtr node = stack.back();
        stack.pop_back();
        if (node->op == scatter_op())
            found.push_back(node);
        else if (node->op == add_op() || node->op == cast_op())
            stack.insert(stack.end(), node->inputs.rbegin(), node->inputs.rend());
        else
            return {};
    }
    return found;
}

// How often each row is looked up by the indices of a scatter: [rows].
NodePtr counts_of(const NodePtr& scatter, Where where) {
    const NodePtr& indices = scatter->inputs[1];
    const NodePtr one = make_constant(Array(std::int32_t{1}), where);
    return make_node(scatter_op(), {make_expand(one, indices->type.shape, where), indices},
                     {{"extent", scatter->type.shape[0]}}, where);
}

}  // namespace

Expr rows_looked_up(const Term& gradient) {
    const Where where = gradient.where;
    NodePtr counts;
    for (const NodePtr& scatter : scatters_of(gradient.node())) {
        const NodePtr own = counts_of(scatter, where);
        counts = counts ? make_node(add_op(), {counts, own}, {}, where) : own;
    }
    if (!counts) return {};
    Shape shape(gradient.type().shape.size(), 1);
    shape[0] = gradient.type().shape[0];
    const Term in_rows(make_reshape(counts, shape, where), where);
    return compose(gt_op(), {in_rows.x, literal(0, where)}, where).x;
}

}  // namespace bitale
