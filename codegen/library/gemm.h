// Recognises nests that a matrix-product library computes.
#pragma once

#include <functional>
#include <optional>

#include "codegen/program.h"
#include "codegen/target.h"
#include "graph/ir/nest.h"

namespace bitale {

struct GemmMatch {
    GemmCall call;
    int a = 0, b = 0;  // operand numbers of the nest
};

// A float32 sum of products of two plain row-major reads, large enough to be worth a call; else nothing.
std::optional<GemmMatch> match_gemm(const Nest& nest,
                                    const std::function<const Shape&(int)>& shape_of_operand,
                                    const Target& target);

}  // namespace bitale
