// Pieces of a product's operand: a kernel makes the one that a slice needs next.
#pragma once

#include "codegen/schedule/segment.h"

namespace bitale {

// Of operand `side` of the product that the call of a value computes, into `piece`. Its tasks are the pieces:
// those of the first slice's rows, or columns, along the depth, then those of the next. Sets the transposed
// flag of the operand, by which a piece lies as what it is made of does.
Segment schedule_pieces(int value, int side, GemmCall& call, int piece, const SegmentContext& context,
                        KernelBuilder& builder, std::string& notes);

}  // namespace bitale
