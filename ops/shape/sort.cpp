#include "ops/shape/sort.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/elements.h"
#include "ops/shape/gather.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

bool is_32_bits(const Int& length) { return length.range().high <= std::numeric_limits<std::int32_t>::max(); }

Type infer_argsort(const Nodes& inputs, const Attributes&, Where) {
    const Type& keys = inputs[0]->type;
    BITALE_CHECK(keys.rank() == 1 && is_integer(keys.dtype), "argsort of what is no vector of integers");
    return {keys.dtype, keys.shape};
}

Nest nest_argsort(const Node& node) {
    const Type& keys = node.inputs[0]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.reduced = loops_over(keys.shape, "k");
    nest.combine = Combine::order;
    nest.dtype = nest.accumulator = keys.dtype;
    nest.body = scalar_read(keys.dtype, 0, variables_of(nest.reduced));
    return nest;
}

Array evaluate_argsort(const Node& node, const std::vector<Array>& inputs) {
    const std::vector<std::int64_t> keys = inputs[0].to_vector<std::int64_t>();
    std::vector<std::int64_t> order(keys.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)];
    });
    return Array(order).as(node.type.dtype);
}

// As scatter's nest, by the runs of the keys: points where the key is the row follow each other.
Nest nest_sum_runs(const Node& node) {
    const Type &x = node.inputs[0]->type, &keys = node.inputs[1]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.reduced = loops_over(keys.shape, "k");
    nest.dtype = x.dtype;
    nest.accumulator = accumulator_of(x.dtype);
    nest.combine = Combine::sum;
    const Int row = nest.parallel[0].variable, place = nest.reduced[0].variable, extent = node.type.shape[0];
    const Int key = Int::symbol("key", make_loop("key", extent).variable.range());
    BITALE_CHECK(row.symbol_id() && key.symbol_id(), "runs of a single row");
    nest.lets = {{key, scalar_cast(DType::int64, scalar_read(keys.dtype, 1, {place})), extent}};
    nest.guards = {{key, row, row + 1}};
    std::vector<Int> at{place};
    for (std::size_t i = 1; i < nest.parallel.size(); ++i) at.push_back(nest.parallel[i].variable);
    nest.body = scalar_read(x.dtype, 0, at);
    return nest;
}

}  // namespace

const Op* argsort_op() {
    static const Op* op = register_op({
        .name = "argsort",
        .kind = OpKind::reduce,
        .arity = 1,
        .infer = infer_argsort,
        .evaluate = evaluate_argsort,
        .nest = nest_argsort,
    });
    return op;
}

const Op* sum_runs_op() {
    static const Op* op = register_op({
        .name = "sum_runs",
        .kind = OpKind::reduce,
        .arity = 2,
        .infer = scatter_op()->infer,
        .equalities = scatter_op()->equalities,
        .evaluate = scatter_op()->evaluate,
        .nest = nest_sum_runs,
    });
    return op;
}

SortedKeys make_sorted(const NodePtr& indices, const Int& extent, Where where) {
    const Int count = count_of(indices->type.shape);
    const DType dtype = is_32_bits(count) && is_32_bits(extent) ? DType::int32 : DType::int64;
    NodePtr keys = make_reshape(indices, {count}, where);
    if (keys->type.dtype != dtype) keys = make_node(cast_op(), {keys}, {{"dtype", dtype}}, where);
    const NodePtr order = make_node(argsort_op(), {keys}, {}, where);
    return {order, make_node(gather_op(), {keys, order}, {}, where)};
}

NodePtr make_scatter_of_sorted(const NodePtr& scatter, const SortedKeys& sorted) {
    const NodePtr &g = scatter->inputs[0], &indices = scatter->inputs[1];
    Shape rows = g->type.shape;
    rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(indices->type.shape.size()));
    rows.insert(rows.begin(), sorted.keys->type.shape[0]);
    const NodePtr x =
        make_node(gather_op(), {make_reshape(g, rows, scatter->where), sorted.order}, {}, scatter->where);
    return make_node(sum_runs_op(), {x, sorted.keys}, {{"extent", scatter->type.shape[0]}}, scatter->where);
}

}  // namespace bitale
