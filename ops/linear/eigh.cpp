#include "ops/linear/eigh.h"

#include <cstddef>
#include <cstring>
#include <numeric>
#include <vector>

#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/elementwise/elementwise.h"
#include "ops/linear/jacobi.h"
#include "ops/shape/lengths.h"
#include "ops/shape/sequence.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace bitale {

namespace {

Type infer_eigh(const Nodes& inputs, const Attributes&, Where where) {
    const Type& a = inputs[0]->type;
    const std::string of = "eigh of " + describe(*inputs[0]) + ": ";
    if (a.dtype != float32 && a.dtype != float64)
        throw TypeError(where, of + "it computes in float32 or float64, not in " +
                                   std::string(name_of(a.dtype)) + "; write " +
                                   cast_text(inputs[0], float32));
    if (a.rank() < 2)
        throw ShapeError(where, of + "it takes a matrix, or several [..., n, n]; this has no two axes");
    const Int &rows = a.shape[a.shape.size() - 2], &columns = a.shape.back();
    if (never_equal(rows, columns))
        throw ShapeError(where, of + "it takes square matrices, but " + rows.text() + " is not " +
                                    columns.text() + "; of a matrix of data take dot(transpose(x), x)");
    Type type = a;
    type.shape[type.shape.size() - 2] = columns + 1;
    return type;
}

std::vector<Equality> eigh_equalities(const Node& node) {
    std::vector<Equality> r;
    const Shape& shape = node.inputs[0]->type.shape;
    demand_equal(r, shape[shape.size() - 2], shape.back(), "rows and columns of a symmetric matrix");
    return r;
}

Int matrices_of(const Shape& shape) { return count_of(Shape(shape.begin(), shape.end() - 2)); }

Array evaluate_eigh(const Node& node, const std::vector<Array>& inputs) {
    Array r(float64, static_dims(node.type.shape));
    const auto n = static_cast<std::size_t>(r.shape().back());
    if (r.size() == 0) return r;
    const auto* from = static_cast<const double*>(inputs[0].data());
    auto* to = static_cast<double*>(r.mutable_data());
    for (std::int64_t k = matrices_of(node.type.shape).constant(); k > 0; --k, from += n * n) {
        const EigenSystem<double> system = jacobi(n, from);
        std::memcpy(to, system.values.data(), n * sizeof(double));
        std::memcpy(to + n, system.vectors.data(), n * n * sizeof(double));
        to += n + n * n;
    }
    return r;
}

NodePtr last_two_swapped(const NodePtr& x, Where where) {
    std::vector<std::int64_t> axes(x->type.shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
    return make_permute(x, axes, where);
}

// Part of the result, and the cotangent of that part.
NodePtr values_in(const NodePtr& whole, Where where) {
    Shape shape = whole->type.shape;
    shape.erase(shape.end() - 2);
    const int axis = static_cast<int>(shape.size()) - 1;
    return make_reshape(make_slice(whole, axis, 0, 1, 1, where), shape, where);
}
NodePtr vectors_in(const NodePtr& whole, Where where) {
    const int axis = whole->type.rank() - 2;
    return make_slice(whole, axis, 1, whole->type.shape.back(), 1, where);
}

// Nothing arrives for the vectors: the cotangent of the values alone, among zeros.
bool is_of_values(const NodePtr& g) {
    if (g->op != place_slice_op()) return false;
    const Shape& part = g->inputs[0]->type.shape;
    return part[part.size() - 2].is(1) && g->attributes.get<std::vector<Int>>("start")[part.size() - 2].is(0);
}

// Of the lower triangle, which alone is read: an element off the diagonal stands for two of the matrix.
Expr of_lower_triangle(const Expr& g, Where where) {
    const Int n = type_of(g).shape.back();
    const NodePtr numbers = make_iota(n, where);
    const Expr column = wrap(make_reshape(numbers, {1, n}, where)),
               row = wrap(make_reshape(numbers, {n, 1}, where)),
               both = g + wrap(last_two_swapped(g.node(), where));
    return bitale::where(gt({row, where}, {column, where}), {both, where},
                         bitale::where(eq({row, where}, {column, where}), {g, where}, {0, where}));
}

// V (diag(gw) + F o (V^T gV)) V^T with F[i, j] = 1 / (w[j] - w[i]) off the diagonal, as in Giles, "Collected
// matrix derivative results for forward and reverse mode algorithmic differentiation", 2008, 3.1. Where two
// eigenvalues are the same number F is 0: their vectors are any of their plane.
Nodes gradient_eigh(const NodePtr& node, const NodePtr& g) {
    const Where where = node->where;
    const Expr w = wrap(eigenvalues_of(node, where)), v = wrap(eigenvectors_of(node, where)),
               rows = wrap(vectors_in(node, where)), gw = wrap(values_in(g, where));
    if (is_of_values(g)) {
        const Expr scaled = mul({v, where}, {expand_dims(gw, -2, where), where});
        return {of_lower_triangle(matmul(scaled, rows, where), where).node()};
    }
    const Expr gv = wrap(last_two_swapped(vectors_in(g, where), where));
    const Expr beside = expand_dims(w, -2, where), below = expand_dims(w, -1, where);
    const Expr apart = sub({beside, where}, {below, where}), same = eq({beside, where}, {below, where});
    const Expr inverse = bitale::where({same, where}, {0, where},
                                       div({1, where}, {bitale::where(same, {1, where}, apart), where}));
    const Int n = type_of(w).shape.back();
    const NodePtr numbers = make_iota(n, where);
    const Expr diagonal = eq({wrap(make_reshape(numbers, {1, n}, where)), where},
                             {wrap(make_reshape(numbers, {n, 1}, where)), where});
    const Expr inner = bitale::where({diagonal, where}, {expand_dims(gw, -2, where), where},
                                     mul({inverse, where}, {matmul(rows, gv, where), where}));
    return {of_lower_triangle(matmul(matmul(v, inner, where), rows, where), where).node()};
}

}  // namespace

const Op* eigh_op() {
    static const Op* op = register_op({
        .name = "eigh",
        .kind = OpKind::opaque,
        .arity = 1,
        .infer = infer_eigh,
        .equalities = eigh_equalities,
        .gradient = gradient_eigh,
        .evaluate = evaluate_eigh,
        .routine =
            [](const Node& node) {
                const Shape& shape = node.type.shape;
                return Routine{"eigh", {matrices_of(shape), shape.back()}};
            },
    });
    return op;
}

NodePtr eigenvalues_of(const NodePtr& eigh, Where where) { return values_in(eigh, where); }
NodePtr eigenvectors_of(const NodePtr& eigh, Where where) {
    return last_two_swapped(vectors_in(eigh, where), where);
}

void register_eigh_ops() { eigh_op(); }

Eigh eigh(const Expr& a, Where where) try {
    require_present("eigh", {&a}, where);
    const NodePtr whole = make_node(eigh_op(), {a.node()}, {}, where);
    return {wrap(eigenvalues_of(whole, where)), wrap(eigenvectors_of(whole, where))};
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
