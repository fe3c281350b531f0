// Recognises nests that a matrix-product library computes.
#pragma once

#include <optional>

#include "codegen/library/call.h"
#include "codegen/nest/access.h"
#include "codegen/target.h"
#include "graph/ir/nest.h"

namespace bitale {

// A float32 sum of products of two plain row-major reads; else nothing. Operands are the numbers of the nest.
std::optional<LibraryCall> match_gemm(const Nest& nest, const ShapeOf& shape_of, const Target& target);

}  // namespace bitale
