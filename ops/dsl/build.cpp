// What op families share to build expressions.
#include "ops/dsl/build.h"

#include <algorithm>
#include <cmath>

#include "graph/base/numbers.h"
#include "graph/types/convert.h"
#include "graph/walk/length.h"
#include "ops/dsl/literal.h"
#include "ops/dsl/wording.h"
#include "ops/shape/sequence.h"
#include "ops/shape/view.h"

namespace bitale {

const ApiBorder expressing("for an expression");

void type_error(Where where, const std::string& op, const std::string& message) {
    throw TypeError(where, op + ": " + message);
}

Expr apply(const Op* op, const std::vector<Expr>& inputs, Attributes attributes, Where where) {
    Nodes nodes;
    for (const Expr& x : inputs) {
        require_present(op->name.c_str(), {&x}, where);
        nodes.push_back(x.node());
    }
    return wrap(make_node(op, std::move(nodes), std::move(attributes), where));
}

bool literal_fits(const Expr& x, DType dtype) {
    if (!x.is_weak()) return true;
    const Array& literal = constant_value(x.node());
    if (literal.dtype() == dtype) return true;
    const Array converted = literal.as(dtype);
    if (!is_float(converted.dtype())) {
        // Through both directions: a wrapped integer may come back by wrapping once more.
        const bool negative = literal.at(0) < 0, now_negative = converted.at(0) < 0;
        return negative == now_negative && same(converted.as(literal.dtype()), literal);
    }
    return std::isfinite(literal.at(0)) == std::isfinite(converted.at(0));
}

std::string digits_of(const Expr& literal) { return number_text(constant_value(literal.node()).at(0), 17); }

Expr strengthen(const Expr& x, DType dtype, Where where) {
    if (!x.is_weak()) return x;
    const Array& literal = constant_value(x.node());
    if (literal.dtype() == dtype) return Expr(literal, where);
    if (!literal_fits(x, dtype))
        throw TypeError(where, "the literal " + digits_of(x) + " does not fit in " +
                                   std::string(name_of(dtype)) + "; cast the other operand to a wider dtype");
    return Expr(literal.as(dtype), where);
}

namespace {

// Of the axis so far from the end.
[[noreturn]] void cannot_broadcast(const Node& a, const Node& b, std::size_t from_end, const char* op,
                                   Where where) {
    const std::size_t axis_a = a.type.shape.size() - from_end, axis_b = b.type.shape.size() - from_end;
    const std::string cure = vector_cure(a, b);
    throw ShapeError(where, std::string(op) + " of " + describe(a) + " and " + describe(b) +
                                ": they cannot be broadcast together: " +
                                unlike_lengths(a, axis_a, a.type.shape[axis_a].text(), b, axis_b,
                                               b.type.shape[axis_b].text()) +
                                (cure.empty() ? "; only an axis of length 1 is broadcast" : cure));
}

}  // namespace

std::vector<Expr> broadcast(const std::vector<Expr>& operands, const char* op, Where where) {
    std::size_t rank = 0;
    for (const Expr& x : operands) rank = std::max(rank, type_of(x).shape.size());
    // Axis by axis from the right: the first length that is not 1, a known one before a symbol.
    Shape common(rank, Int(1));
    std::vector<const Expr*> from(rank, nullptr);
    for (const Expr& x : operands) {
        const Shape& shape = type_of(x).shape;
        for (std::size_t i = 0; i < shape.size(); ++i) {
            const std::size_t axis = rank - shape.size() + i;
            const Int& length = shape[i];
            if (length.is(1)) continue;
            if (from[axis]) {
                const IntRange difference = (length - common[axis]).range();
                if (difference.low > 0 || difference.high < 0)
                    cannot_broadcast(*from[axis]->node(), *x.node(), rank - axis, op, where);
            }
            if (!from[axis] || (length.is_constant() && !common[axis].is_constant())) {
                common[axis] = length;
                from[axis] = &x;
            }
        }
    }
    std::vector<Expr> r;
    for (const Expr& x : operands) {
        const Shape& shape = type_of(x).shape;
        if (shape.empty()) {
            r.push_back(x);
            continue;
        }
        Shape target = common;
        for (std::size_t i = 0; i < shape.size(); ++i)
            if (!shape[i].is(1)) target[rank - shape.size() + i] = shape[i];
        r.push_back(expand_to(x, target, where));
    }
    return r;
}

Expr expand_to(const Expr& x, const Shape& shape, Where where) {
    return wrap(make_expand(x.node(), shape, where));
}
Expr reshape_to(const Expr& x, const Shape& shape, Where where) {
    return wrap(make_reshape(x.node(), shape, where));
}

int checked_axis(int axis, int rank, const char* op, Where where) {
    if (axis < -rank || axis >= rank)
        throw IndexError(where, std::string(op) + ": there is no axis " + std::to_string(axis) +
                                    " in a tensor of rank " + std::to_string(rank));
    return axis < 0 ? axis + rank : axis;
}

Int length_from(const Expr& x, const char* op, Where where) {
    require_present(op, {&x}, where);
    if (x.rank() != 0 || !is_integer(x.dtype()))
        type_error(where, op, "a length is an integer scalar, not " + describe(*x.node()));
    const std::optional<Int> length = length_of(x.node());
    if (!length)
        throw GraphError(where,
                         std::string(op) + ": " + describe(*x.node()) +
                             " is known on the device only; a length is made of integer constants, integer "
                             "scalar inputs and lengths of other tensors");
    return *length;
}

Expr expr_of(const Int& length, Where where) { return wrap(make_length(length, where)); }

}  // namespace bitale
