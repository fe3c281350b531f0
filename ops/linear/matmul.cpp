// Products of many matrices: matmul and batched_dot. They are sums over a broadcast product, which the
// compiler takes for matrix products wherever it meets them.
#include "bitale/ops.h"

#include <algorithm>
#include <string>

#include "ops/dsl/build.h"
#include "ops/dsl/wording.h"
#include "ops/linear/contract.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

void require_axes(const std::string& name, const Expr& a, const Expr& b, Where where) {
    if (a.rank() == 0 || b.rank() == 0)
        throw ShapeError(where, name + " of " + describe(*a.node()) + " and " + describe(*b.node()) +
                                    ": a scalar has no axis to sum over; write a * b");
}

void require_equal(const std::string& name, const Expr& a, const Expr& b, const Int& left, const Int& right,
                   Where where) {
    if (never_equal(left, right))
        throw ShapeError(where, name + " of " + describe(*a.node()) + " and " + describe(*b.node()) +
                                    ": it sums over an axis of both, but " + left.text() + " is not " +
                                    right.text() + "; transpose or reshape one operand");
}

// The axes before the last two are broadcast.
void require_batches(const Expr& a, const Expr& b, Where where) {
    const Shape &left = type_of(a).shape, &right = type_of(b).shape;
    for (std::size_t back = 3; back <= std::min(left.size(), right.size()); ++back) {
        const Int &x = left[left.size() - back], &y = right[right.size() - back];
        if (!x.is(1) && !y.is(1) && never_equal(x, y))
            throw ShapeError(where, "matmul of " + describe(*a.node()) + " and " + describe(*b.node()) +
                                        ": the numbers of matrices must be equal, but " +
                                        unlike_lengths(*a.node(), left.size() - back, x.text(), *b.node(),
                                                       right.size() - back, y.text()));
    }
}

// The axes that both operands have, of one length.
void make_equal(Expr& a, std::size_t axis_of_a, Expr& b, std::size_t axis_of_b, Where where) {
    const Int left = type_of(a).shape[axis_of_a], right = type_of(b).shape[axis_of_b];
    a = beside(a, axis_of_a, right, where);
    b = beside(b, axis_of_b, left, where);
}

// [..., m, k] times [..., k, n] -> [..., m, n].
Expr product(const Expr& a, const Expr& b, Where where) {
    return sum(mul({expand_dims(a, -1, where), where}, {expand_dims(b, -3, where), where}), {-2}, {}, where);
}

}  // namespace

Expr matmul(const Expr& a, const Expr& b, Where where) try {
    require_present("matmul", {&a, &b}, where);
    require_axes("matmul", a, b, where);
    Expr x = a, y = b;
    if (!widen_integers("matmul", x, y, where)) require_floats("matmul", a.node(), b.node(), where);
    const Shape &left = type_of(a).shape, &right = type_of(b).shape;
    require_equal("matmul", a, b, left.back(), right[right.size() < 2 ? 0 : right.size() - 2], where);
    require_batches(a, b, where);
    // Rows of all matrices by one matrix are one product.
    if (b.rank() <= 2) return dot(a, b, where);
    Expr rows = a.rank() == 1 ? expand_dims(x, 0, where) : x, columns = y;
    const Shape &first = type_of(rows).shape, &second = type_of(columns).shape;
    make_equal(rows, first.size() - 1, columns, second.size() - 2, where);
    const Expr result = product(rows, columns, where);
    return a.rank() == 1 ? squeeze(result, -2, where) : result;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

Expr batched_dot(const Expr& a, const Expr& b, Where where) try {
    require_present("batched_dot", {&a, &b}, where);
    require_axes("batched_dot", a, b, where);
    Expr x = a, y = b;
    if (!widen_integers("batched_dot", x, y, where)) require_floats("batched_dot", a.node(), b.node(), where);
    const std::string operands =
        "batched_dot of " + describe(*a.node()) + " and " + describe(*b.node()) + ": ";
    for (const Expr& operand : {a, b})
        if (operand.rank() > 3)
            throw ShapeError(where, operands +
                                        "it takes batches of vectors and matrices, of rank 2 and 3; use "
                                        "matmul for several axes of batches");
    for (const Expr& operand : {a, b})
        if (operand.rank() < 2)
            throw ShapeError(where, operands +
                                        "the first axis of both is the batch, and each item has an axis "
                                        "to sum over; use dot for vectors and matrices");
    const Shape &left = type_of(a).shape, &right = type_of(b).shape;
    if (never_equal(left[0], right[0]))
        throw ShapeError(where, operands + "the batches have " + left[0].text() + " and " + right[0].text() +
                                    " items; both need the same number");
    require_equal("batched_dot", a, b, left.back(), right[1], where);
    Expr rows = a.rank() == 2 ? expand_dims(x, 1, where) : x,
         columns = b.rank() == 2 ? expand_dims(y, 2, where) : y;
    make_equal(rows, 0, columns, 0, where);
    make_equal(rows, 2, columns, 1, where);
    Expr result = product(rows, columns, where);
    if (b.rank() == 2) result = squeeze(result, 2, where);
    return a.rank() == 2 ? squeeze(result, 1, where) : result;
} catch (const std::bad_alloc&) {
    expressing.fail();
}

}  // namespace bitale
