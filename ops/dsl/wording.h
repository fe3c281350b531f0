// What messages say of axes, operands and numbers.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "bitale/expr.h"

namespace bitale {

// The axis from the front; IndexError with the operand and its axes when there is none like it.
int checked_axis(int axis, const Expr& x, const char* op, Where where);
// "axes are 0 and 1, or -1 and -2"
std::string axes_text(int rank);
// How the cure of an error names an operand: by its name, else by its place, such as "the second operand".
std::string word_for(const Expr& operand, const char* place);
// GraphError with the user's line where one of the operands is an empty expression.
void require_present(const char* op, std::initializer_list<const Expr*> operands, Where where);
// "mul of "n" (int64 [n.0]) at net.cpp:7 and the number 2.5"
std::string operation_text(const std::string& op, const std::vector<Expr>& operands);
// "axis 1 of "x" has length 9 and axis 0 of "w" has length 8".
std::string unlike_lengths(const Node& a, std::size_t axis_a, const std::string& length_a, const Node& b,
                           std::size_t axis_b, const std::string& length_b);
// The same for a call, which puts the numbers in (graph/ir/fault_text.h): those of an Equality of the length
// of axis_a and that of axis_b.
std::string unlike_lengths(const Node& a, std::size_t axis_a, const Node& b, std::size_t axis_b);
// "; write channel(b) for a number for each channel": what cures the broadcast of a vector along the last
// axis of a tensor where another axis has, or may have, the vector's length; else empty.
std::string vector_cure(const Node& a, const Node& b);
// The `what` of a Check of elements: its error adds " in "labels"", where views show a variable's elements.
std::string with_source(const std::string& what, const Node& elements);
// The cast that cures an error: "cast(x, float32)" of a variable or a short expression of some, else
// "cast(the second operand, float32)" with the operand's place.
std::string cast_text(const std::shared_ptr<const Node>& operand, DType dtype, const char* place = "...");
// A short expression of named variables and numbers as in the program, "n + 0.5"; empty for others.
std::string program_text(const std::shared_ptr<const Node>& node);

}  // namespace bitale
