#include "codegen/group/one_hot_rows.h"

#include <cmath>
#include <cstddef>
#include <optional>

#include "bitale/ops.h"
#include "codegen/group/one_hot_array.h"
#include "codegen/group/one_hot_counts.h"
#include "codegen/group/replace.h"
#include "codegen/group/values.h"
#include "graph/base/options.h"
#include "ops/dsl/build.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/contract.h"
#include "ops/shape/gather.h"
#include "ops/shape/sequence.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// Fewer rows of the result are a product that takes less time than a sort, and than rows in another order. An
// unknown number of rows counts as many: a product of few takes little time in either form.
constexpr double fewest_rows = 512;

// The numbers k [rows] of a matrix that is one where the index along `axis` is k, else zero.
NodePtr numbers_of(const NodePtr& matrix, std::size_t axis, Where where) {
    const std::optional<OneHot> hot = one_hot_of(matrix, where);
    return hot && hot->axis == axis ? hot->numbers : nullptr;
}

// Each row of g, added to the row of the result that has its number.
NodePtr added(const NodePtr& g, const NodePtr& numbers, const Int& rows, Where where) {
    const Expr k = cast(wrap(numbers), int64, where), last = wrap(make_length(rows - 1, where)),
               in_range = logical_and(ge(k, 0), le(k, last)),
               terms = bitale::where(g->type.rank() == 2 ? expand_dims(in_range, 1) : in_range, wrap(g), 0);
    return make_node(scatter_op(), {terms.node(), minimum(maximum(k, 0), last).node()}, {{"extent", rows}},
                     where);
}

// dot(a, b), where one of the factors is such a matrix along the axis that the other one lacks; that one may
// be a vector.
NodePtr scatter_of(const Node& node, const Target& target) {
    if (node.op != dot_op()) return nullptr;
    for (const std::size_t side : {0, 1}) {
        const NodePtr &matrix = node.inputs[side], &other = node.inputs[1 - side];
        const std::size_t rank = other->type.rank();
        if (matrix->type.rank() != 2 || rank > 2) continue;
        const Int& rows = node.type.shape[rank == 2 ? side : 0];
        const double terms = typical(other->type.shape[rank == 2 ? side : 0]);
        if ((rows.is_constant() && typical(rows) < fewest_rows) ||
            typical(rows) * terms < target.looks_of_sort)
            continue;
        const NodePtr numbers = numbers_of(matrix, side, node.where);
        if (!numbers) continue;
        const bool turned = side == 1 && rank == 2;
        const Expr all = turned ? transpose(wrap(other)) : wrap(other);
        const NodePtr sums = added(all.node(), numbers, rows, node.where);
        return turned ? transpose(wrap(sums)).node() : sums;
    }
    return nullptr;
}

}  // namespace

void add_one_hot_rows(Graph& graph, const Target& target) {
    if (std::isinf(target.looks_of_sort) || options().strict_math || !options().enabled("one-hot-sums"))
        return;
    replace_nodes(graph, [&](const NodePtr& node) {
        const NodePtr counts = counts_of(node);
        return counts ? counts : scatter_of(*node, target);
    });
}

}  // namespace bitale
