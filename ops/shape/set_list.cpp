// set_list: x with other rows where a list of indices says so.
#include <cstddef>
#include <utility>
#include <vector>

#include "graph/ir/fault_text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/promotion.h"
#include "ops/shape/elements.h"
#include "ops/shape/gather.h"
#include "ops/shape/lengths.h"
#include "ops/shape/sequence.h"
#include "ops/shape/sort.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

Type infer_set_list(const Nodes& inputs, const Attributes&, Where) {
    const Type &x = inputs[0]->type, &part = inputs[1]->type, &indices = inputs[2]->type;
    BITALE_CHECK(x.rank() > 0 && part.dtype == x.dtype && part.rank() == x.rank() - 1 + indices.rank() &&
                     is_integer(indices.dtype),
                 "set_list needs a row of the same dtype for each index");
    return x;
}

Array evaluate_set_list(const Node& node, const std::vector<Array>& inputs) {
    Array r = inputs[0];
    const Dims row(r.shape().begin() + 1, r.shape().end());
    const std::int64_t length = count_of(row), rows = r.shape()[0];
    std::int64_t from = 0;
    for (const std::int64_t at : inputs[2].to_vector<std::int64_t>()) {
        if (at < 0 || at >= rows)
            throw IndexError(node.where, "set_subtensor: row " + std::to_string(at) +
                                             " is out of range for " + std::to_string(rows) + " rows");
        for (std::int64_t j = 0; j < length; ++j) copy_element(r, at * length + j, inputs[1], from++);
    }
    return r;
}

// Terms of one user's statement.
class Listed {
  public:
    explicit Listed(Where where) : where_(where) {}

    Arg operator()(const Expr& x) const { return {x, where_}; }
    Expr range_to(const Int& end) const { return wrap(make_iota(end, where_)); }
    Expr taken(const Expr& x, const Expr& positions, bool permutation) const {
        return apply(take_along_op(), {x, positions}, {{"permutation", permutation}}, where_);
    }

    // For each of `rows`, 1 + the last position of its index in the flat list, 0 where there is none: in a
    // stable order of the list, the last of each run of equal indices. Code generation may look for them in
    // another way (codegen/group/lookups.h).
    Expr found(const Expr& indices, const Int& count, const Int& rows) const {
        const Listed& of = *this;
        const Expr list = cast(reshape_to(indices, {count}, where_), DType::int64, where_);
        const Expr order = wrap(make_argsort(list.node(), count, false, DType::int64, where_));
        const Expr sorted = taken(list, order, true), number = range_to(count);
        const Expr last = expr_of(count - 1, where_);
        const Expr next = taken(sorted, minimum(of(of(number) + of(1)), of(last)), false);
        const Expr ends = logical_or(of(eq(of(number), of(last))), of(neq(of(sorted), of(next))));
        const Expr position = bitale::where(of(ends), of(of(order) + of(1)), of(0));
        return apply(scatter_op(), {position, sorted}, {{"extent", rows}, {"last_of_list", true}}, where_);
    }

  private:
    const Where where_;
};

NodePtr decompose_set_list(const NodePtr& node) {
    const Listed of(node->where);
    const Expr x = wrap(node->inputs[0]), indices = wrap(node->inputs[2]);
    const Shape& shape = x.node()->type.shape;
    const Int count = count_of(indices.node()->type.shape);
    const Expr found = of.found(indices, count, shape[0]);
    Shape listed = shape, each(shape.size(), Int(1));
    listed[0] = count;
    each[0] = shape[0];
    // One row of zeros before the others: there is a row to choose even where the list is empty.
    std::vector<std::pair<int, int>> borders(listed.size(), {0, 0});
    borders[0].first = 1;
    const Expr values = pad(reshape_to(wrap(node->inputs[1]), listed, node->where), borders, 0, node->where);
    const Expr is_named = reshape_to(of(found) > of(0), each, node->where);
    // The half types are storage only, but come back from float32 as they were.
    const DType own = node->type.dtype, computed = wide_of(own);
    const Expr row = cast(gather(values, found, node->where), computed, node->where),
               old = cast(x, computed, node->where);
    return cast(bitale::where(of(is_named), of(row), of(old)), own, node->where).node();
}

// Of equal indices, the last one alone has set its row.
Nodes gradient_set_list(const NodePtr& node, const NodePtr& g) {
    const Listed of(node->where);
    const NodePtr &part = node->inputs[1], &indices = node->inputs[2];
    const NodePtr others =
        make_node(set_list_op(), {g, make_zeros(g->type.dtype, part->type.shape, node->where), indices}, {},
                  node->where);
    const Shape& list = indices->type.shape;
    const Expr number = reshape_to(of.range_to(count_of(list)), list, node->where);
    const Expr last =
        apply(set_list_op(),
              {wrap(make_zeros(DType::int64, {node->type.shape[0]}, node->where)), number, wrap(indices)}, {},
              node->where);
    Shape each = list;
    each.resize(part->type.shape.size(), Int(1));
    const Expr sets =
        reshape_to(eq(of(gather(last, wrap(indices), node->where)), of(number)), each, node->where);
    const DType own = g->type.dtype;
    const Expr row = cast(gather(wrap(g), wrap(indices), node->where), wide_of(own), node->where);
    return {others, cast(bitale::where(of(sets), of(row), of(0)), own, node->where).node(), nullptr};
}

}  // namespace

const Op* set_list_op() {
    static const Op* op = register_op({
        .name = "set_list",
        .title = "set_subtensor",
        .kind = OpKind::composite,
        .arity = 3,
        .infer = infer_set_list,
        .checks =
            [](const Node& node) {
                return std::vector<Check>{
                    {node.inputs[2], 0, node.inputs[0]->type.shape[0],
                     with_source("a row index of set_subtensor of " + describe(*node.inputs[0]),
                                 *node.inputs[2]),
                     node.where}};
            },
        .gradient = gradient_set_list,
        .evaluate = evaluate_set_list,
        .decompose = decompose_set_list,
    });
    return op;
}

}  // namespace bitale
