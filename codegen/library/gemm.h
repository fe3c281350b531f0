// Recognises nests that a matrix-product library computes.
#pragma once

#include <optional>

#include "codegen/library/call.h"
#include "codegen/nest/access.h"
#include "codegen/target.h"
#include "graph/ir/nest.h"

namespace bitale {

bool has_products_of(DType dtype, const Target& target);

// A sum of products of two plain row-major reads, of floats of one width that the target multiplies; else
// nothing. Operands are the numbers of the nest.
std::optional<LibraryCall> match_gemm(const Nest& nest, const ShapeOf& shape_of, const Target& target);

}  // namespace bitale
