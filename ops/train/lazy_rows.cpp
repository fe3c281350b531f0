#include "ops/train/lazy_rows.h"

#include <vector>

#include "graph/walk/traverse.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/shape/gather.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// The gradient of table[k], where k is a scalar that only a call tells.
bool is_of_one_row(const Node& node) {
    return node.op == place_rows_op() && node.inputs[0]->type.shape[0].is(1) && !is_constant(node.inputs[1]);
}

NodePtr as_scatter(const NodePtr& of_one_row, Where where) {
    const NodePtr indices = make_expand(of_one_row->inputs[1], {1}, where);
    return make_node(scatter_op(), {of_one_row->inputs[0], indices}, {{"extent", of_one_row->type.shape[0]}},
                     where);
}

// What a gradient is the sum of, in any dtype: scatters and gradients of one row; nothing where anything else
// is in it.
Nodes lookups_in(const NodePtr& gradient) {
    Nodes found, stack{gradient};
    while (!stack.empty()) {
        const NodePtr node = stack.back();
        stack.pop_back();
        if (node->op == scatter_op() || is_of_one_row(*node))
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

std::optional<LazyRows> lazy_rows_of(const Term& lookups, const Term& gradient) {
    const Where where = lookups.where;
    NodePtr counts;
    NodeMap scatters;
    for (const NodePtr& node : lookups_in(lookups.node())) {
        NodePtr scatter = node;
        if (is_of_one_row(*node)) scatters.emplace(node.get(), scatter = as_scatter(node, where));
        const NodePtr own = counts_of(scatter, where);
        counts = counts ? make_node(add_op(), {counts, own}, {}, where) : own;
    }
    if (!counts) return {};
    Shape shape(lookups.type().shape.size(), 1);
    shape[0] = lookups.type().shape[0];
    const Term in_rows(make_reshape(counts, shape, where), where);
    const Term reached = compose(gt_op(), {in_rows.x, literal(0, where)}, where);
    const Term by_lookups(replace({gradient.node()}, scatters)[0], gradient.where);
    return LazyRows{reached.x, by_lookups};
}

}  // namespace bitale
