// Overloaded operators: the rows of the elementwise table under another name.
#include "bitale/ops.h"

namespace bitale {

Expr operator+(const Arg& a, const Arg& b) { return add(a, b); }
Expr operator-(const Arg& a, const Arg& b) { return sub(a, b); }
Expr operator*(const Arg& a, const Arg& b) { return mul(a, b); }
Expr operator/(const Arg& a, const Arg& b) { return div(a, b); }
Expr operator%(const Arg& a, const Arg& b) { return mod(a, b); }
Expr operator<(const Arg& a, const Arg& b) { return lt(a, b); }
Expr operator<=(const Arg& a, const Arg& b) { return le(a, b); }
Expr operator>(const Arg& a, const Arg& b) { return gt(a, b); }
Expr operator>=(const Arg& a, const Arg& b) { return ge(a, b); }
Expr operator-(const Arg& a) { return neg(a); }

}  // namespace bitale
