// Matrices by where their elements lie: the identity, triangles and diagonals.
#include <algorithm>
#include <cstddef>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "bitale/ops.h"
#include "graph/ir/fault_text.h"
#include "graph/ir/op.h"
#include "ops/dsl/build.h"
#include "ops/dsl/compose.h"
#include "ops/dsl/wording.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"
#include "ops/shape/sequence.h"
#include "ops/shape/triangle.h"

namespace bitale {

namespace {

// The number of the row, or of the column, of each element of matrices; columns are counted from `first` on.
Expr numbers(const Shape& shape, std::size_t axis, std::int64_t first, Where where) {
    const Int& length = shape[axis];
    Expr count = wrap(make_iota(length, where));
    if (first != 0) count = compose(add_op(), {count, Expr(first, where)}, where).x;
    if (axis + 2 == shape.size()) count = reshape_to(count, {length, 1}, where);
    return expand_to(count, shape, where);
}

// `op` of the numbers of row and column, of which columns are counted from -k on: eq is the k-th diagonal.
Expr compared(const Op* op, const Shape& shape, std::int64_t k, Where where) {
    constexpr std::int64_t beyond_all = std::int64_t{1} << 61;  // of arrays that memory holds
    const std::size_t rank = shape.size();
    const std::int64_t first = -std::clamp(k, -beyond_all, beyond_all);
    return compose(op, {numbers(shape, rank - 2, 0, where), numbers(shape, rank - 1, first, where)}, where).x;
}

const Shape& matrices(const char* name, const Expr& x, Where where) {
    require_present(name, {&x}, where);
    if (x.rank() < 2)
        throw ShapeError(where, std::string(name) + " of " + describe(*x.node()) + ": it takes matrices");
    return type_of(x).shape;
}

Expr triangle(const char* name, const Op* op, const Expr& x, std::int64_t k, Where where) {
    const Expr inside = compared(op, matrices(name, x, where), k, where);
    return compose(where_op(), {inside, x, strengthen(Expr(0, where), x.dtype(), where)}, where).x;
}

// ---- The diagonal

std::string not_square(const Node& x, const std::string& columns) {
    return "diagonal of " + describe(x) + ": it takes square matrices, but these have " + columns +
           " columns";
}

Type infer_diagonal(const Nodes& inputs, const Attributes&, Where where) {
    Type type = inputs[0]->type;
    if (type.rank() < 2)
        throw ShapeError(where, "diagonal of " + describe(*inputs[0]) + ": it takes matrices");
    const Int columns = type.shape.back();
    type.shape.pop_back();
    if (never_equal(type.shape.back(), columns))
        throw ShapeError(where, not_square(*inputs[0], columns.text()));
    return type;
}

std::vector<Equality> are_square(const Node& node) {
    const Shape& shape = node.inputs[0]->type.shape;
    std::vector<Equality> r;
    demand_equal(r, shape[shape.size() - 2], shape.back(), not_square(*node.inputs[0], number_found()));
    return r;
}

// 0 off the diagonal.
Expr on_diagonal(const Expr& x, Where where) {
    const Expr zero = strengthen(Expr(0, where), x.dtype(), where);
    return compose(where_op(), {compared(eq_op(), type_of(x).shape, 0, where), x, zero}, where).x;
}

// Each sum has one term at most that is not left out, which a rule finds without a sum (one-hot-sums).
NodePtr decompose_diagonal(const NodePtr& node) {
    const Expr x = wrap(node->inputs[0]);
    const Op* const op = x.dtype() == DType::boolean ? any_op() : sum_op();
    return cast(reduce(op, on_diagonal(x, node->where), {x.rank() - 1}, {}, node->where), x.dtype(),
                node->where)
        .node();
}

Nodes gradient_diagonal(const NodePtr& node, const NodePtr& g) {
    const Shape& shape = node->inputs[0]->type.shape;
    Shape column = g->type.shape;
    column.push_back(1);
    const Expr along = expand_to(reshape_to(wrap(g), column, node->where), shape, node->where);
    return {on_diagonal(along, node->where).node()};
}

Array evaluate_diagonal(const Node& node, const std::vector<Array>& inputs) {
    return copied(inputs[0], static_dims(node.type.shape), [&](Dims at) {
        at.push_back(at.back());
        return linear_of(at, inputs[0].shape());
    });
}

}  // namespace

Expr eye(const Expr& rows, std::optional<Expr> columns, std::int64_t k, DType dtype, Where where) try {
    require_present("eye", {&rows}, where);
    const auto length = [&](const Expr& x) {
        const Int count = length_from(x, "eye", where);
        if (count.range().high < 0)
            throw ShapeError(where, "eye: a length must not be negative, but is " + count.text());
        return count;
    };
    const Shape shape{length(rows), length(columns.value_or(rows))};
    return cast(compared(eq_op(), shape, k, where), dtype, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr tril(const Expr& x, std::int64_t k, Where where) try {
    return triangle("tril", ge_op(), x, k, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr triu(const Expr& x, std::int64_t k, Where where) try {
    return triangle("triu", le_op(), x, k, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

const Op* diagonal_op() {
    static const Op* op = register_op({
        .name = "diagonal",
        .kind = OpKind::composite,
        .arity = 1,
        .infer = infer_diagonal,
        .equalities = are_square,
        .gradient = gradient_diagonal,
        .evaluate = evaluate_diagonal,
        .decompose = decompose_diagonal,
    });
    return op;
}

Expr diagonal(const Expr& x, Where where) try {
    require_present("diagonal", {&x}, where);
    return apply(diagonal_op(), {x}, {}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr trace(const Expr& x, Where where) try {
    require_present("trace", {&x}, where);
    return sum(diagonal(x, where), {-1}, {}, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
