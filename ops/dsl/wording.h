// What messages say of axes, operands and numbers.
#pragma once

#include <string>

#include "bitale/expr.h"

namespace bitale {

// The axis from the front; IndexError with the operand and its axes when there is none like it.
int checked_axis(int axis, const Expr& x, const char* op, Where where);
// "axes are 0 and 1, or -1 and -2"
std::string axes_text(int rank);
// How the cure of an error names an operand: by its name, else by its place, such as "the second operand".
std::string word_for(const Expr& operand, const char* place);
// "0.5", as in the program.
std::string number_text(double x);

}  // namespace bitale
