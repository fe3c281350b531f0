#include "ops/linear/contract.h"

#include <numeric>

#include "graph/base/text.h"
#include "graph/ir/fault_text.h"
#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/elementwise.h"
#include "ops/elementwise/promotion.h"
#include "ops/shape/elements.h"
#include "ops/shape/lengths.h"
#include "ops/shape/view.h"

namespace bitale {

void require_floats(const std::string& name, const NodePtr& a, const NodePtr& b, Where where) {
    const auto computes = [](const NodePtr& x) {
        return x->type.dtype == DType::float32 || x->type.dtype == DType::float64;
    };
    const std::string operands = name + " of " + describe(*a) + " and " + describe(*b) + ": ";
    for (const NodePtr& x : {a, b})
        if (!computes(x))
            throw TypeError(where,
                            operands + "it computes in float32 or float64, not in " +
                                std::string(name_of(x->type.dtype)) + "; write " +
                                cast_text(x, float32, x == a ? "the first operand" : "the second operand"));
    if (a->type.dtype != b->type.dtype)
        throw TypeError(where, operands + std::string(name_of(a->type.dtype)) + " and " +
                                   std::string(name_of(b->type.dtype)) +
                                   " do not mix; cast one, as in cast(" +
                                   word_for(wrap(a), "the first operand") + ", " +
                                   std::string(name_of(b->type.dtype)) + ")");
}

bool widen_integers(const std::string& name, Expr& a, Expr& b, Where where) {
    const auto counts = [](const Expr& x) { return is_integer(x.dtype()) || x.dtype() == DType::boolean; };
    if (!counts(a) || !counts(b)) return false;
    if (share_no_integer(a.dtype(), b.dtype()))
        throw TypeError(where, name + " of " + describe(*a.node()) + " and " + describe(*b.node()) +
                                   ": uint64 and a signed integer do not mix; cast one, as in " +
                                   cast_text(a.dtype() == DType::uint64 ? a.node() : b.node(), int64,
                                             "the unsigned operand"));
    const auto is_unsigned = [](const Expr& x) {
        return is_integer(x.dtype()) && !is_signed_integer(x.dtype());
    };
    const DType wide = is_unsigned(a) && is_unsigned(b) ? DType::uint64 : DType::int64;
    a = cast(a, wide, where);
    b = cast(b, wide, where);
    return true;
}

// `x` with the length that its axis has to have beside the other operand's: 1 beside 1, which would
// broadcast.
Expr beside(const Expr& x, std::size_t axis, const Int& other, Where where) {
    Shape shape = type_of(x).shape;
    if (!other.is(1) || shape[axis].is(1)) return x;
    shape[axis] = 1;
    return expand_to(x, shape, where);
}

namespace {

std::size_t summed_axis(const Node& second) {
    const int rank = second.type.rank();
    return rank < 2 ? 0 : static_cast<std::size_t>(rank) - 2;
}

// `differing`: which axes of the two have which lengths. `features`: how long the first one's is.
std::string unequal_lengths(const Node& a, const Node& b, const std::string& differing,
                            const std::string& features) {
    std::string cure = "; transpose or reshape one operand";
    if (a.type.rank() > 2 && b.type.rank() == 2)
        cure =
            "; write dot(flatten(x, 2), w) for all features of each row of x, or transpose or reshape one "
            "operand";
    else if (a.op == reshape_op() && a.type.rank() == 2 && a.inputs[0]->type.rank() > 2 &&
             b.type.rank() == 2 && !b.name.empty())
        cure = "; " + in_quotes(b.name) + " needs a row for each of the " + features + " features";
    return "dot of " + describe(a) + " and " + describe(b) + ": it sums over an axis of both, but " +
           differing + cure;
}

[[noreturn]] void refuse_lengths(const NodePtr& a, const NodePtr& b, Where where) {
    const std::size_t last = a->type.shape.size() - 1, summed = summed_axis(*b);
    const std::string features = a->type.shape[last].text();
    throw ShapeError(
        where,
        unequal_lengths(*a, *b, unlike_lengths(*a, last, features, *b, summed, b->type.shape[summed].text()),
                        features));
}

Type infer_dot(const Nodes& inputs, const Attributes&, Where where) {
    const NodePtr &a = inputs[0], &b = inputs[1];
    const auto counts = [](const NodePtr& x) { return x->type.dtype == DType::int32; };
    if (!counts(a) || !counts(b)) require_floats("dot", a, b, where);
    const Shape &left = a->type.shape, &right = b->type.shape;
    BITALE_CHECK(!left.empty() && left.size() <= 2 && !right.empty() && right.size() <= 2,
                 "dot takes vectors and matrices");
    if (never_equal(left.back(), right.front())) refuse_lengths(a, b, where);
    Type type{a->type.dtype, {}};
    if (left.size() == 2) type.shape.push_back(left[0]);
    if (right.size() == 2) type.shape.push_back(right[1]);
    return type;
}

std::vector<Equality> dot_equalities(const Node& node) {
    std::vector<Equality> r;
    const Node *a = node.inputs[0].get(), *b = node.inputs[1].get();
    if (a->type.shape.back() == b->type.shape.front()) return r;
    // The user's tensor of higher rank, which became a matrix by joining all axes but the last.
    if (a->op == reshape_op() && a->where.line == node.where.line && a->inputs[0]->type.rank() > 2 &&
        a->inputs[0]->type.shape.back() == a->type.shape.back())
        a = a->inputs[0].get();
    demand_equal(r, a->type.shape.back(), b->type.shape.front(),
                 unequal_lengths(*a, *b, unlike_lengths(*a, a->type.shape.size() - 1, *b, summed_axis(*b)),
                                 number_found()));
    return r;
}

NodePtr transposed(const NodePtr& x, Where where) { return make_permute(x, {1, 0}, where); }

// [n] times [m] -> [n, m].
NodePtr outer(const NodePtr& a, const NodePtr& b, Where where) {
    const Int &n = a->type.shape[0], &m = b->type.shape[0];
    const NodePtr rows = make_expand(make_reshape(a, {n, 1}, where), {n, m}, where);
    return make_node(mul_op(), {rows, make_expand(b, {n, m}, where)}, {}, where);
}

Nodes gradient_dot(const NodePtr& node, const NodePtr& g) {
    const NodePtr &a = node->inputs[0], &b = node->inputs[1];
    const Where where = node->where;
    const auto product = [&](const Op* op, const NodePtr& x, const NodePtr& y) {
        return make_node(op, {x, y}, {}, where);
    };
    const bool matrix_a = a->type.rank() == 2, matrix_b = b->type.rank() == 2;
    if (matrix_a && matrix_b)
        return {product(dot_op(), g, transposed(b, where)), product(dot_op(), transposed(a, where), g)};
    if (matrix_a) return {outer(g, b, where), product(dot_op(), g, a)};
    if (matrix_b) return {product(dot_op(), b, g), outer(a, g, where)};
    return {product(mul_op(), b, g), product(mul_op(), a, g)};
}

Nest nest_dot(const Node& node) {
    const Type &a = node.inputs[0]->type, &b = node.inputs[1]->type;
    Nest nest;
    nest.parallel = loops_over(node.type.shape);
    nest.reduced = {make_loop("k", a.shape.back())};
    nest.combine = Combine::sum;
    nest.accumulator = nest.dtype = node.type.dtype;
    const Int& k = nest.reduced[0].variable;
    std::vector<Int> left, right;
    if (a.rank() == 2) left.push_back(nest.parallel.front().variable);
    left.push_back(k);
    right.push_back(k);
    if (b.rank() == 2) right.push_back(nest.parallel.back().variable);
    nest.body = scalar_apply(mul_op(), node.type.dtype,
                             {scalar_read(a.dtype, 0, left), scalar_read(b.dtype, 1, right)});
    return nest;
}

Array evaluate_dot(const Node& node, const std::vector<Array>& inputs) {
    const Array &a = inputs[0], &b = inputs[1];
    const std::int64_t rows = a.rank() == 2 ? a.shape()[0] : 1, columns = b.rank() == 2 ? b.shape()[1] : 1;
    const std::int64_t inner = a.shape().back();
    Array r(DType::float64, static_dims(node.type.shape));
    const std::span<const double> left = a.view<double>(), right = b.view<double>();
    auto* out = static_cast<double*>(r.mutable_data());
    for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < columns; ++j, ++out)
            for (std::int64_t k = 0; k < inner; ++k)
                *out += left[static_cast<std::size_t>(i * inner + k)] *
                        right[static_cast<std::size_t>(k * columns + j)];
    return r;
}

// Of vectors and matrices: a sum over a broadcast product.
Expr product_of_integers(Expr x, Expr y, Where where) {
    const int axis = x.rank() - 1, columns = y.rank() - 1;
    // Both with the length that they have to share: 1 beside 1 would broadcast.
    const Int left = type_of(x).shape.back(), right = type_of(y).shape.front();
    x = beside(x, static_cast<std::size_t>(axis), right, where);
    y = beside(y, 0, left, where);
    for (int i = 0; i < columns; ++i) x = expand_dims(x, -1, where);
    return sum(mul({x, where}, {y, where}), {axis}, {}, where);
}

}  // namespace

const Op* dot_op() {
    static const Op* op = register_op({
        .name = "dot",
        .kind = OpKind::reduce,
        .arity = 2,
        .result = "a product",
        .infer = infer_dot,
        .equalities = dot_equalities,
        .gradient = gradient_dot,
        .evaluate = evaluate_dot,
        .nest = nest_dot,
    });
    return op;
}

void register_contract_ops() { BITALE_CHECK(dot_op(), "dot is not registered"); }

Expr dot(const Expr& a, const Expr& b, Where where) try {
    require_present("dot", {&a, &b}, where);
    if (a.rank() == 0 || b.rank() == 0)
        throw ShapeError(where, "dot of " + describe(*a.node()) + " and " + describe(*b.node()) +
                                    ": a scalar has no axis to sum over; write a * b");
    Expr x = a, y = b;
    const bool integers = widen_integers("dot", x, y, where);
    if (!integers) require_floats("dot", a.node(), b.node(), where);
    // Everything else becomes a product of two matrices: [I..., k] . [J..., k, n] -> [I..., J..., n].
    const Shape &left = type_of(a).shape, &right = type_of(b).shape;
    const std::size_t inner = right.size() < 2 ? 0 : right.size() - 2;
    if (never_equal(left.back(), right[inner])) refuse_lengths(a.node(), b.node(), where);
    Shape rows(left.begin(), left.end() - 1), columns = right;
    columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(inner));
    if (left.size() > 2) x = reshape_to(x, {count_of(rows), left.back()}, where);
    if (right.size() > 2) {
        std::vector<std::int64_t> order(right.size());
        std::iota(order.begin(), order.end(), 0);
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(inner));
        order.insert(order.begin(), static_cast<std::int64_t>(inner));
        y = reshape_to(wrap(make_permute(y.node(), order, where)), {right[inner], count_of(columns)}, where);
    }
    const Expr product = integers ? product_of_integers(x, y, where) : apply(dot_op(), {x, y}, {}, where);
    rows.insert(rows.end(), columns.begin(), columns.end());
    return reshape_to(product, rows, where);
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
