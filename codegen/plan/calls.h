// Steps that call a library: sizes, operands and slices.
#pragma once

#include <variant>

#include "codegen/group/values.h"
#include "codegen/program.h"
#include "codegen/target.h"

namespace bitale {

// What a call computes and moves where all of its operands are in memory, and why a library computes it.
void describe_call(const LibraryCall& call, Step& step);

// The buffer that an opaque node's routine works in.
BufferInfo workspace_of(const RoutineCall& call, const Node& node);

// Which operands of a product are made in pieces, and whether they are a matrix and its own transpose.
void describe_operands(const LibraryCall& library, const Values& values, const Target& target, GemmStep& gemm,
                       Step& step);

// Slices whose sizes are written into kernels.
void cut_into_slices(GemmCall& call);

}  // namespace bitale
