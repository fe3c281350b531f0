// Whether a number of the program keeps its value.
#pragma once

#include "bitale/expr.h"

namespace bitale {

// Whether a literal keeps its value as another dtype; a float may be rounded, but not to infinity. true of
// every other expression.
bool literal_fits(const Expr& x, DType dtype);
// "300", of a literal.
std::string digits_of(const Expr& literal);

}  // namespace bitale
