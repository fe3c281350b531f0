// Where in memory the reads of a nest go, and how far they move along a loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "graph/ir/nest.h"

namespace bitale {

// Shape in memory of what reads number.
using ShapeOf = std::function<const Shape&(Operand)>;

// Position of the element that is read, row-major.
Int offset_of(const ScalarNode& read, const ShapeOf& shape_of);

// By how much x moves as the variable moves by one; nothing where that is not the same everywhere.
std::optional<Int> stride_of(const Int& x, const Int& variable);

// The axis whose index alone moves with the variable, by one.
std::optional<std::size_t> axis_along(const ScalarNode& read, const Int& variable);

// How many of the distinct reads step through memory one element at a time with the variable.
int unit_stride_reads(const Nest& nest, const Int& variable, const ShapeOf& shape_of);
bool unit_stride(const Nest& nest, const Int& variable, const ShapeOf& shape_of);
// Whether some read steps so between one number and the next at which a quotient of the variable changes, of
// which there are at least `shortest`: a loop that is cut there (kernel/quotients.h) walks along memory.
bool unit_stride_in_runs(const Nest& nest, const Int& variable, std::int64_t shortest,
                         const ShapeOf& shape_of);
// Whether some read takes short steps with the variable, forwards or backwards: lines of the cache that it
// reads are used for several iterations.
bool short_stride(const Nest& nest, const Int& variable, const ShapeOf& shape_of);

}  // namespace bitale
