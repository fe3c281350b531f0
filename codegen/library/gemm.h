// Recognises nests that a matrix-product library computes.
#pragma once

#include <optional>

#include "codegen/library/call.h"
#include "codegen/nest/access.h"
#include "codegen/target.h"
#include "graph/ir/nest.h"

namespace bitale {

bool has_products_of(DType dtype, const Target& target);

// A sum of products of two plain row-major reads, whatever is read: sizes and transposes. `a` and `b` are the
// reads, of which a runs over the rows of the result.
std::optional<GemmCall> match_matrices(const Nest& nest, const ScalarNode& a, const ScalarNode& b,
                                       const ShapeOf& shape_of);

// Such a sum of floats of one width that the target multiplies, or of int32 whose factors are casts of what
// takes_integers() says; else nothing. Operands are the numbers of the nest.
std::optional<LibraryCall> match_gemm(const Nest& nest, const ShapeOf& shape_of, const Target& target);

// Of products of int32: whether a library multiplies factors of these dtypes.
bool takes_integers(DType a, DType b);

}  // namespace bitale
