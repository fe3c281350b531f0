#include "ops/shape/gather.h"

#include "graph/ir/fault_text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"
#include "ops/shape/sequence.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

// The shape [indices..., rest of x], or its part behind the indices.
Shape behind(const Shape& shape, std::size_t axes) {
    return Shape(shape.begin() + static_cast<std::ptrdiff_t>(axes), shape.end());
}

Type infer_gather(const Nodes& inputs, const Attributes&, Where where) {
    const Type &x = inputs[0]->type, &indices = inputs[1]->type;
    require_integers(inputs[1], "gather", where);
    if (x.rank() == 0)
        throw ShapeError(where,
                         "gather: " + describe(*inputs[0]) + " is a scalar and has no rows to choose from");
    if (x.shape[0].is(0) && count_of(indices.shape).range().low > 0)
        throw IndexError(where, "gather: " + describe(*inputs[0]) + " has no rows to choose from");
    Type type{x.dtype, indices.shape};
    type.shape.insert(type.shape.end(), x.shape.begin() + 1, x.shape.end());
    return type;
}

std::vector<Equality> gather_equalities(const Node& node) {
    std::vector<Equality> r;
    demand_at_most(r, min(count_of(node.inputs[1]->type.shape), 1), node.inputs[0]->type.shape[0],
                   "gather from " + describe(*node.inputs[0]) +
                       " needs at least 1 row to choose from, but there are " + number_there());
    return r;
}

Nest nest_gather(const Node& node) {
    const Type &x = node.inputs[0]->type, &indices = node.inputs[1]->type;
    std::vector<Loop> loops = loops_over(node.type.shape);
    const std::vector<Int> variables = variables_of(loops);
    const auto split = variables.begin() + indices.rank();
    std::vector<Int> at{0};
    at.insert(at.end(), split, variables.end());
    Nest nest = view_nest(node, std::move(loops), {});
    if (!x.shape[0].is(1)) {
        const Scalar row = scalar_read(indices.dtype, 1, std::vector<Int>(variables.begin(), split));
        at[0] = Int::symbol("row", make_loop("row", x.shape[0]).variable.range());
        if (at[0].symbol_id()) nest.lets.push_back({at[0], scalar_cast(DType::int64, row), x.shape[0]});
    }
    nest.body = scalar_read(x.dtype, 0, std::move(at));
    return nest;
}

// The indices as int64; IndexError names one that is out of range.
std::vector<std::int64_t> checked_rows(const Node& node, const Array& indices, std::int64_t extent) {
    std::vector<std::int64_t> rows = indices.to_vector<std::int64_t>();
    for (const std::int64_t row : rows)
        if (row < 0 || row >= extent)
            throw IndexError(node.where, node.op->name + ": row " + std::to_string(row) +
                                             " is out of range for " + std::to_string(extent) + " rows");
    return rows;
}

Array evaluate_gather(const Node& node, const std::vector<Array>& inputs) {
    const Array &x = inputs[0], &indices = inputs[1];
    Dims shape = indices.shape(), row(x.shape().begin() + 1, x.shape().end());
    shape.insert(shape.end(), row.begin(), row.end());
    Array r(x.dtype(), shape);
    const std::int64_t length = count_of(row);
    std::int64_t to = 0;
    for (const std::int64_t row : checked_rows(node, indices, x.shape()[0]))
        for (std::int64_t j = 0; j < length; ++j) copy_element(r, to++, x, row * length + j);
    return r;
}

// ---- scatter
// ----------------------------------------------------------------------------------------------------

Type infer_scatter(const Nodes& inputs, const Attributes& attributes, Where where) {
    const Type &g = inputs[0]->type, &indices = inputs[1]->type;
    require_integers(inputs[1], "scatter", where);
    bool fits = g.rank() >= indices.rank();
    for (std::size_t i = 0; fits && i < indices.shape.size(); ++i)
        fits = !never_equal(g.shape[i], indices.shape[i]);
    if (!fits)
        throw ShapeError(where, "scatter: the leading axes of " + describe(*inputs[0]) +
                                    " must be those of " + describe(*inputs[1]));
    Type type{g.dtype, {attributes.get<Int>("extent")}};
    const Shape rest = behind(g.shape, indices.shape.size());
    type.shape.insert(type.shape.end(), rest.begin(), rest.end());
    return type;
}

std::vector<Equality> scatter_equalities(const Node& node) {
    std::vector<Equality> r;
    const Shape &g = node.inputs[0]->type.shape, &indices = node.inputs[1]->type.shape;
    for (std::size_t i = 0; i < indices.size(); ++i)
        demand_equal(r, g[i], indices[i],
                     "the lengths of axis " + std::to_string(i) + " of the operands of scatter");
    return r;
}

// Every row looks at all indices: right for any repetition and of fixed order, if not quick.
Nest nest_scatter(const Node& node) {
    const Type &g = node.inputs[0]->type, &indices = node.inputs[1]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.reduced = loops_over(indices.shape, "k");
    nest.dtype = g.dtype;
    nest.accumulator = accumulator_of(g.dtype);
    nest.combine = nest.reduced.empty() ? Combine::none : Combine::sum;
    const std::vector<Int> chosen = variables_of(nest.reduced);
    std::vector<Int> at = chosen;
    for (std::size_t i = 1; i < nest.parallel.size(); ++i) at.push_back(nest.parallel[i].variable);
    const Scalar row = scalar_cast(DType::int64, scalar_read(indices.dtype, 1, chosen));
    const Scalar here =
        scalar_apply(eq_op(), DType::boolean, {row, scalar_index(DType::int64, nest.parallel[0].variable)});
    nest.body =
        scalar_apply(where_op(), g.dtype, {here, scalar_read(g.dtype, 0, at), scalar_integer(g.dtype, 0)});
    return nest;
}

Array evaluate_scatter(const Node& node, const std::vector<Array>& inputs) {
    const Array &g = inputs[0], &indices = inputs[1];
    Array r(g.dtype(), static_dims(node.type.shape));
    const std::int64_t length = count_of(Dims(r.shape().begin() + 1, r.shape().end()));
    const std::vector<std::int64_t> rows = checked_rows(node, indices, r.shape()[0]);
    dispatch(g.dtype(), [&](auto t) {
        using T = decltype(t);
        if constexpr (Number<T>) {
            auto* to = static_cast<T*>(r.mutable_data());
            const auto* from = static_cast<const T*>(g.data());
            for (const std::int64_t row : rows)
                for (std::int64_t j = 0; j < length; ++j, ++from)
                    to[row * length + j] = static_cast<T>(to[row * length + j] + *from);
        }
    });
    return r;
}

}  // namespace

void require_integers(const NodePtr& indices, const char* op, Where where) {
    if (!is_integer(indices->type.dtype))
        throw TypeError(where, std::string(op) + ": the indices " + describe(*indices) +
                                   " must have an integer dtype; write " + cast_text(indices, int64));
}

const Op* gather_op() {
    static const Op* op = register_op({
        .name = "gather",
        .kind = OpKind::view,
        .arity = 2,
        .takes_rows = true,
        .infer = infer_gather,
        .equalities = gather_equalities,
        .checks =
            [](const Node& node) {
                return std::vector<Check>{
                    {node.inputs[1], 0, node.inputs[0]->type.shape[0],
                     with_source("a row index of gather from " + describe(*node.inputs[0]), *node.inputs[1]),
                     node.where}};
            },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{make_node(scatter_op(), {g, node->inputs[1]},
                                       {{"extent", node->inputs[0]->type.shape[0]}}, node->where),
                             nullptr};
            },
        .evaluate = evaluate_gather,
        .nest = nest_gather,
    });
    return op;
}

const Op* scatter_op() {
    static const Op* op = register_op({
        .name = "scatter",
        .kind = OpKind::reduce,
        .arity = 2,
        .infer = infer_scatter,
        .equalities = scatter_equalities,
        .checks =
            [](const Node& node) {
                return std::vector<Check>{
                    {node.inputs[1], 0, node.type.shape[0],
                     with_source("a row index of gather from " + text_of(node.type), *node.inputs[1]),
                     node.where}};
            },
        .gradient =
            [](const NodePtr& node, const NodePtr& g) {
                return Nodes{make_node(gather_op(), {g, node->inputs[1]}, {}, node->where), nullptr};
            },
        .evaluate = evaluate_scatter,
        .nest = nest_scatter,
    });
    return op;
}

Expr gather(const Expr& x, const Expr& indices, Where where) try {
    return apply(gather_op(), {x, indices}, {}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr one_hot(const Expr& labels, const Expr& classes, DType dtype, Where where) try {
    require_present("one_hot", {&labels, &classes}, where);
    require_integers(labels.node(), "one_hot", where);
    const Int count = length_from(classes, "one_hot", where);
    if (count.range().high < 0)
        throw ShapeError(where,
                         "one_hot: the number of classes must not be negative, but is " + count.text());
    Shape shape = type_of(labels).shape;
    shape.push_back(1);
    const Expr columns = reshape_to(labels, shape, where);
    shape.back() = count;
    const Expr numbers = wrap(make_expand(make_iota(count, where), shape, where));
    const Expr hot =
        apply(eq_op(), {cast(expand_to(columns, shape, where), DType::int64, where), numbers}, {}, where);
    return cast(hot, dtype, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
