// Loops of which reads ask for quotients: of the planes that a number means, or of the row that is repeated.
#pragma once

#include <cstdint>

#include "codegen/nest/access.h"
#include "graph/ir/nest.h"

namespace bitale {

// Whether guards or lets of the nest ask for the symbol.
bool in_guards(const Nest& nest, std::uint64_t id);

// The number by which quotients of the loop's variable are asked for, of where reads are or of a value, if it
// divides the loop; 0: none.
std::int64_t divided_by(const Nest& full, const Loop& loop, const ShapeOf& shape_of);

// Each loop over results of which reads ask for quotients is two, the second one as long as the divisor:
//   for h < 8: c[h] = a[h] * b[h / 4]
// is
//   for u < 2: for w < 4: c[4 * u + w] = a[4 * u + w] * b[u]
// with results in the same order.
Nest with_results_in_planes(Nest nest, const ShapeOf& shape_of);

}  // namespace bitale
