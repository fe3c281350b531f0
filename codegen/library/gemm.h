// Recognises nests that a matrix-product library computes.
#pragma once

#include <functional>
#include <optional>

#include "codegen/library/call.h"
#include "codegen/target.h"
#include "graph/ir/nest.h"

namespace bitale {

// A float32 sum of products of two plain row-major reads; else nothing. Operands are the numbers of the nest.
std::optional<LibraryCall> match_gemm(const Nest& nest,
                                      const std::function<const Shape&(int)>& shape_of_operand,
                                      const Target& target);

}  // namespace bitale
