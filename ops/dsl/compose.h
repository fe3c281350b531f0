// Algebra on expressions inside the library: every node made carries the line of the user's statement that it
// stands for, not a line of the library.
#pragma once

#include "ops/elementwise/elementwise.h"

namespace bitale {

struct Term {
    Expr x;
    Where where;

    Term(Expr expr, Where w) : x(std::move(expr)), where(w) {}
    Term(NodePtr node, Where w) : x(std::move(node)), where(w) {}
    const NodePtr& node() const { return x.node(); }
    const Type& type() const { return x.node()->type; }
};

// An elementwise op on terms of one dtype that broadcast; a number takes that dtype.
inline Term compose(const Op* op, const std::vector<Expr>& operands, Where where) {
    return {elementwise(op, operands, where), where};
}
inline Expr literal(double number, Where where) { return Expr(number, where); }

#define BITALE_TERM_OPERATOR(symbol, op)                                                                   \
    inline Term operator symbol(const Term& a, const Term& b) { return compose(op, {a.x, b.x}, a.where); } \
    inline Term operator symbol(const Term& a, double b) {                                                 \
        return compose(op, {a.x, literal(b, a.where)}, a.where);                                           \
    }                                                                                                      \
    inline Term operator symbol(double a, const Term& b) {                                                 \
        return compose(op, {literal(a, b.where), b.x}, b.where);                                           \
    }
BITALE_TERM_OPERATOR(+, add_op())
BITALE_TERM_OPERATOR(-, sub_op())
BITALE_TERM_OPERATOR(*, mul_op())
BITALE_TERM_OPERATOR(/, div_op())
#undef BITALE_TERM_OPERATOR

inline Term operator-(const Term& a) { return compose(neg_op(), {a.x}, a.where); }
inline Term map(const Op* op, const Term& a) { return compose(op, {a.x}, a.where); }
inline Term exp(const Term& a) { return map(exp_op(), a); }
inline Term log(const Term& a) { return map(log_op(), a); }
inline Term log1p(const Term& a) { return map(log1p_op(), a); }
inline Term expm1(const Term& a) { return map(expm1_op(), a); }
inline Term sqrt(const Term& a) { return map(sqrt_op(), a); }

// 0 where a == number, else b: keeps 0 * infinity and 0 / 0 out of sums.
inline Term zero_where(const Term& a, double number, const Term& b) {
    const Term same = compose(eq_op(), {a.x, literal(number, a.where)}, a.where);
    return compose(where_op(), {same.x, literal(0, a.where), b.x}, a.where);
}

}  // namespace bitale
