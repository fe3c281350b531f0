// Recognises sums of products that are many matrix products, or products of parts of tensors.
#pragma once

#include <optional>

#include "codegen/library/call.h"
#include "codegen/nest/access.h"
#include "codegen/target.h"
#include "graph/ir/nest.h"

namespace bitale {

// A sum of products of two plain reads of floats of one width that the target multiplies, each of which moves
// by the same step along every loop: one
// axis that both factors sum over, one of results along which the first factor alone moves, and one, the
// last, along which the second does (or the other way round); all other axes are batches, those of the sum
// too: a[o, l] . b[k, l] over l, added up over n, for sum(a[n, o, l] * b[n, k, l]) over n and l. Operands are
// the numbers of the nest.
std::optional<LibraryCall> match_strided(const Nest& nest, const ShapeOf& shape_of, const Target& target);

}  // namespace bitale
