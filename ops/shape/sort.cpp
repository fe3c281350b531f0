#include "ops/shape/sort.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/ir/fault_text.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/elements.h"
#include "ops/shape/gather.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

bool is_32_bits(const Int& length) { return length.range().high <= std::numeric_limits<std::int32_t>::max(); }

Type infer_argsort(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type& x = inputs[0]->type;
    const Int& count = attributes.get<Int>("count");
    BITALE_CHECK(x.rank() > 0, "argsort of a scalar");
    if ((x.shape.back() - count).range().high < 0 || count.range().high < 0)
        throw ShapeError(where, "of " + describe(*inputs[0]) + " the last axis is sorted, which has no " +
                                    count.text() + " elements to give");
    Type type{attributes.get<DType>("dtype"), x.shape};
    type.shape.back() = count;
    return type;
}

std::vector<Equality> argsort_equalities(const Node& node) {
    std::vector<Equality> r;
    const Type& x = node.inputs[0]->type;
    demand_at_most(r, node.type.shape.back(), x.shape.back(),
                   title_of(node) + ": " + number_found() + " elements of an axis of " + number_there() +
                       " in " + describe(*node.inputs[0]) + "; ask for 0 up to as many as there are");
    // Elements are sorted together with their positions, as one number of 64 bits.
    constexpr std::int64_t most = std::numeric_limits<std::uint32_t>::max();
    if (bits_of(x.dtype) <= 32)
        demand_at_most(r, x.shape.back(), most,
                       "rows of " + std::string(name_of(x.dtype)) + " are sorted up to 4294967295 elements");
    return r;
}

Nest nest_argsort(const Node& node) {
    const Type& x = node.inputs[0]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.dtype = nest.accumulator = node.type.dtype;
    if (x.shape.back().is(1)) {
        nest.body = scalar_integer(nest.dtype, 0);
        return nest;
    }
    nest.reduced = loops_over({x.shape.back()}, "k");
    nest.combine = node.attributes.get<bool>("descending") ? Combine::order_down : Combine::order;
    std::vector<Int> at = variables_of(nest.parallel);
    at.back() = nest.reduced[0].variable;
    nest.body = scalar_cast(is_half(x.dtype) ? DType::float32 : x.dtype, scalar_read(x.dtype, 0, at));
    return nest;
}

template <class T>
bool comes_before(T a, T b, bool descending) {
    if constexpr (std::is_floating_point_v<T>)
        if (std::isnan(a) || std::isnan(b))
            return std::isnan(descending ? a : b) && std::isnan(a) != std::isnan(b);
    return descending ? b < a : a < b;
}

Array evaluate_argsort(const Node& node, const std::vector<Array>& inputs) {
    const Array& x = inputs[0];
    const bool descending = node.attributes.get<bool>("descending");
    const std::int64_t n = x.shape().back(), count = node.type.shape.back().constant(),
                       rows = count_of(Dims(x.shape().begin(), x.shape().end() - 1));
    std::vector<std::int64_t> all;
    std::vector<std::int64_t> order(static_cast<std::size_t>(n));
    dispatch(x.dtype(), [&](auto t) {
        using T = decltype(t);
        if constexpr (Number<T>) {
            const T* row = static_cast<const T*>(x.data());
            for (std::int64_t r = 0; r < rows; ++r, row += n) {
                std::iota(order.begin(), order.end(), 0);
                std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
                    return comes_before(row[a], row[b], descending);
                });
                all.insert(all.end(), order.begin(), order.begin() + count);
            }
        }
    });
    return Array(std::span<const std::int64_t>(all), static_dims(node.type.shape)).as(node.type.dtype);
}

// ---- elements at positions

Type infer_take_along(const Nodes& inputs, const Attributes&, Where) {
    const Type &x = inputs[0]->type, &positions = inputs[1]->type;
    BITALE_CHECK(x.rank() > 0 && x.rank() == positions.rank() && is_integer(positions.dtype),
                 "positions in rows of another shape");
    return {x.dtype, positions.shape};
}

Nest nest_take_along(const Node& node) {
    const Type &x = node.inputs[0]->type, &positions = node.inputs[1]->type;
    std::vector<Loop> loops = loops_over(node.type.shape);
    std::vector<Int> at = variables_of(loops);
    Nest nest = view_nest(node, std::move(loops), {});
    const Int& length = x.shape.back();
    if (length.is(1)) {
        at.back() = 0;
    } else {
        const Int place = Int::symbol("place", make_loop("place", length).variable.range());
        nest.lets = {{place, scalar_cast(DType::int64, scalar_read(positions.dtype, 1, at)), length}};
        at.back() = place;
    }
    nest.body = scalar_read(x.dtype, 0, at);
    return nest;
}

Array evaluate_take_along(const Node& node, const std::vector<Array>& inputs) {
    const Array& x = inputs[0];
    const std::vector<std::int64_t> positions = inputs[1].to_vector<std::int64_t>();
    Array r(x.dtype(), static_dims(node.type.shape));
    const std::int64_t n = x.shape().back(), count = r.shape().back();
    for (std::int64_t to = 0; to < r.size(); ++to)
        copy_element(r, to, x, to / count * n + positions[static_cast<std::size_t>(to)]);
    return r;
}

// Where the positions are all that there are, each element goes back to where it came from.
Nodes gradient_take_along(const NodePtr& node, const NodePtr& g) {
    const NodePtr& positions = node->inputs[1];
    const Int& length = node->inputs[0]->type.shape.back();
    if (node->attributes.get<bool>("permutation")) {
        const NodePtr back = make_argsort(positions, length, false, positions->type.dtype, node->where);
        return {make_node(take_along_op(), {g, back}, {{"permutation", true}}, node->where), nullptr};
    }
    // Rows are put together one by one: a vector is one of them.
    const auto in_rows = [&](const NodePtr& x) {
        Shape shape = x->type.shape;
        if (shape.size() == 1) shape.insert(shape.begin(), 1);
        return make_reshape(x, shape, node->where);
    };
    const auto in = [&](DType dtype, const NodePtr& x) {
        return x->type.dtype == dtype ? x : make_node(cast_op(), {x}, {{"dtype", dtype}}, node->where);
    };
    const DType dtype = g->type.dtype;
    const NodePtr put = make_node(put_along_op(), {in_rows(in(accumulator_of(dtype), g)), in_rows(positions)},
                                  {{"extent", length}}, node->where);
    return {in(dtype, make_reshape(put, node->inputs[0]->type.shape, node->where)), nullptr};
}

Type infer_put_along(const Nodes& inputs, const Attributes& attributes, Where) {
    BITALE_CHECK(inputs[0]->type.rank() > 0 && inputs[0]->type.rank() == inputs[1]->type.rank(),
                 "positions of other elements");
    Type type = inputs[0]->type;
    type.shape.back() = attributes.get<Int>("extent");
    return type;
}

// Every place looks at all positions of its row.
Nest nest_put_along(const Node& node) {
    const Type &g = node.inputs[0]->type, &positions = node.inputs[1]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.reduced = loops_over({g.shape.back()}, "k");
    nest.dtype = g.dtype;
    nest.accumulator = accumulator_of(g.dtype);
    nest.combine = Combine::sum;
    std::vector<Int> at = variables_of(nest.parallel);
    at.back() = nest.reduced[0].variable;
    const Scalar position = scalar_cast(DType::int64, scalar_read(positions.dtype, 1, at)),
                 own = scalar_index(DType::int64, nest.parallel.back().variable);
    nest.body = scalar_apply(
        where_op(), nest.accumulator,
        {scalar_apply(eq_op(), DType::boolean, {position, own}),
         scalar_cast(nest.accumulator, scalar_read(g.dtype, 0, at)), scalar_integer(nest.accumulator, 0)});
    return nest;
}

Array evaluate_put_along(const Node& node, const std::vector<Array>& inputs) {
    const std::vector<std::int64_t> positions = inputs[1].to_vector<std::int64_t>();
    Array r(inputs[0].dtype(), static_dims(node.type.shape));
    const std::int64_t n = r.shape().back(), count = inputs[0].shape().back();
    dispatch(r.dtype(), [&](auto t) {
        using T = decltype(t);
        if constexpr (Number<T>) {
            T* to = static_cast<T*>(r.mutable_data());
            const T* from = static_cast<const T*>(inputs[0].data());
            for (std::int64_t i = 0; i < inputs[0].size(); ++i) {
                T& sum = to[i / count * n + positions[static_cast<std::size_t>(i)]];
                sum = static_cast<T>(sum + from[i]);
            }
        }
    });
    return r;
}

// As scatter's nest, by the runs of the keys: points where the key is the row follow each other.
Nest nest_sum_runs(const Node& node) {
    const Type &x = node.inputs[0]->type, &keys = node.inputs[1]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.reduced = loops_over(keys.shape, "k");
    // A single key too is looked for at its place in the list.
    if (keys.shape[0].is(1)) nest.reduced[0].variable = Int::symbol("k", {0, 1});
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
        .equalities = argsort_equalities,
        .gradient = [](const NodePtr&, const NodePtr&) { return Nodes{nullptr}; },
        .evaluate = evaluate_argsort,
        .nest = nest_argsort,
    });
    return op;
}

const Op* take_along_op() {
    static const Op* op = register_op({
        .name = "take_along",
        .kind = OpKind::view,
        .arity = 2,
        .infer = infer_take_along,
        .gradient = gradient_take_along,
        .evaluate = evaluate_take_along,
        .nest = nest_take_along,
    });
    return op;
}

const Op* put_along_op() {
    static const Op* op = register_op({
        .name = "put_along",
        .kind = OpKind::reduce,
        .arity = 2,
        .infer = infer_put_along,
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{
                    make_node(take_along_op(), {g, node->inputs[1]}, {{"permutation", false}}, node->where),
                    nullptr};
            },
        .evaluate = evaluate_put_along,
        .nest = nest_put_along,
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

NodePtr make_argsort(const NodePtr& x, const Int& count, bool descending, DType dtype, Where where) {
    return make_node(argsort_op(), {x}, {{"count", count}, {"descending", descending}, {"dtype", dtype}},
                     where);
}

SortedKeys make_sorted(const NodePtr& indices, const Int& extent, Where where) {
    const Int count = count_of(indices->type.shape);
    const DType dtype = is_32_bits(count) && is_32_bits(extent) ? DType::int32 : DType::int64;
    NodePtr keys = make_reshape(indices, {count}, where);
    if (keys->type.dtype != dtype) keys = make_node(cast_op(), {keys}, {{"dtype", dtype}}, where);
    if (count.is(1)) return {nullptr, keys};
    const NodePtr order = make_argsort(keys, count, false, dtype, where);
    return {order, make_node(gather_op(), {keys, order}, {}, where)};
}

NodePtr make_scatter_of_sorted(const NodePtr& scatter, const SortedKeys& sorted) {
    const NodePtr &g = scatter->inputs[0], &indices = scatter->inputs[1];
    Shape rows = g->type.shape;
    rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(indices->type.shape.size()));
    rows.insert(rows.begin(), sorted.keys->type.shape[0]);
    NodePtr x = make_reshape(g, rows, scatter->where);
    if (sorted.order) x = make_node(gather_op(), {x, sorted.order}, {}, scatter->where);
    return make_node(sum_runs_op(), {x, sorted.keys}, {{"extent", scatter->type.shape[0]}}, scatter->where);
}

}  // namespace bitale
