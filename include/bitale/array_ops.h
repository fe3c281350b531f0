// Arithmetic of host arrays. Dtypes, numbers beside arrays, broadcasting and overflow follow the rules of the
// same operators on expressions. Results are computed at once, by plain loops: use this to prepare data and
// to look at results, not for work that belongs in a compiled function.
#pragma once

#include <concepts>
#include <initializer_list>
#include <utility>
#include <vector>

#include "bitale/array.h"
#include "bitale/error.h"
#include "bitale/expr.h"

#pragma GCC visibility push(default)

namespace bitale {

enum class ArrayOp : std::uint8_t { add, sub, mul, div, mod, lt, le, gt, ge, eq, neq };

// The second operand of an operator between arrays. It records the caller's line.
struct ArrayArg {
    ArrayArg(const Array& a, Where w = Where::current()) : array(a), where(w) {}  // NOLINT
    const Array& array;
    Where where;
};

// a op b, element by element: what the operators below call. Throws TypeError and ShapeError as the operators
// on expressions do, and OutOfMemory.
Array combine(ArrayOp op, const Arg& a, const Arg& b);

// Array + Array, Array + number, number + Array. Comparisons give booleans; == and != are written eq(a, b)
// and neq(a, b), element by element. same(a, b) compares whole arrays.
#define BITALE_ARRAY_OPERATOR(name, op)                                \
    template <std::same_as<Array> A>                                   \
    Array name(const A& a, ArrayArg b) {                               \
        return combine(ArrayOp::op, {a, b.where}, {b.array, b.where}); \
    }                                                                  \
    template <std::same_as<Array> A, Number T>                         \
    Array name(const A& a, T b) {                                      \
        return combine(ArrayOp::op, {a, Where()}, {b, Where()});       \
    }                                                                  \
    template <Number T, std::same_as<Array> A>                         \
    Array name(T a, const A& b) {                                      \
        return combine(ArrayOp::op, {a, Where()}, {b, Where()});       \
    }
BITALE_ARRAY_OPERATOR(operator+, add)
BITALE_ARRAY_OPERATOR(operator-, sub)
BITALE_ARRAY_OPERATOR(operator*, mul)
BITALE_ARRAY_OPERATOR(operator/, div)
BITALE_ARRAY_OPERATOR(operator%, mod)
BITALE_ARRAY_OPERATOR(operator<, lt)
BITALE_ARRAY_OPERATOR(operator<=, le)
BITALE_ARRAY_OPERATOR(operator>, gt)
BITALE_ARRAY_OPERATOR(operator>=, ge)
BITALE_ARRAY_OPERATOR(eq, eq)
BITALE_ARRAY_OPERATOR(neq, neq)
#undef BITALE_ARRAY_OPERATOR
// -a; integers wrap. Throws TypeError for booleans.
Array negative(const Array& a, Where where = Where::current());
template <std::same_as<Array> A>
Array operator-(const A& a) {
    return negative(a, Where());
}

// What sum and mean below call.
double sum_of_elements(const Array& a);
double mean_of_elements(const Array& a);
// The sum of all elements of a host array, or of the only output of a call, as a number: 0 of an empty array.
// Booleans count what is true. Integers are added exactly, whatever their dtype, and the sum is rounded once;
// floats are added in double, in row-major order. sum(x) of an expression is the operation: sum(Expr(a), 1)
// for the sums of rows.
template <class A>
requires(std::same_as<A, Array> || (std::convertible_to<const A&, Array> && !Number<A> &&
                                    !std::convertible_to<const A&, Expr>)) double sum(const A& a) {
    return sum_of_elements(a);
}
// The same sum divided by the number of elements: NaN of an empty array, as in NumPy.
template <class A>
requires(std::same_as<A, Array> || (std::convertible_to<const A&, Array> && !Number<A> &&
                                    !std::convertible_to<const A&, Expr>)) double mean(const A& a) {
    return mean_of_elements(a);
}

// The arrays joined along an axis; all their other lengths must be equal. Throws TypeError unless they have
// one dtype, ShapeError if there are none, if other lengths differ and for rank 0, IndexError if there is no
// such axis.
Array concatenate(const std::vector<Array>& parts, int axis = 0, Where where = Where::current());
Array concatenate(std::initializer_list<Array> parts, int axis = 0, Where where = Where::current());
// The arrays, all of one shape, joined along a new first axis: n arrays [h, w] become [n, h, w]. Throws as
// concatenate does.
Array stack(const std::vector<Array>& parts, Where where = Where::current());
Array stack(std::initializer_list<Array> parts, Where where = Where::current());

}  // namespace bitale

#pragma GCC visibility pop
