// Comparing lengths that may be symbolic, and the loops that shape rules and nests share.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/nest.h"
#include "graph/ir/node.h"

namespace bitale {

// Whatever values the symbols take, a and b differ.
bool never_equal(const Int& a, const Int& b);
// Whether arrays of these shapes have one point for each of the other's, if their lengths fit at all: lengths
// that a call has to make equal may have other names.
bool same_points(const Shape& a, const Shape& b);
Shape without_ones(Shape shape);  // the lengths that are not known to be 1
// Appends a == b unless the algebra proves it.
void demand_equal(std::vector<Equality>& into, const Int& a, const Int& b, std::string what);
// Appends a <= b as max(a, b) == b, unless the algebra proves it; `what` is the whole sentence that says so.
void demand_at_most(std::vector<Equality>& into, const Int& a, const Int& b, std::string what);
// Throws ShapeError when a length is known to be negative.
void reject_negative(const Shape& shape, const char* op, Where where);

// One parallel loop per axis: i0, i1, ...
std::vector<Loop> loops_over(const Shape& shape, const char* prefix = "i");
std::vector<Int> variables_of(const std::vector<Loop>& loops);
// Row-major linear index, and back.
Int linear_index(const std::vector<Int>& at, const Shape& shape);
std::vector<Int> axis_indices(const Int& linear, const Shape& shape);

// A nest without reduction whose body reads operand 0 at the given indices.
Nest view_nest(const Node& node, std::vector<Loop> parallel, std::vector<Int> at,
               std::vector<Guard> guards = {}, Scalar otherwise = nullptr);

}  // namespace bitale
