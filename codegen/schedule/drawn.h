// Random words of elements that are neighbours, drawn a block at a time: in vector registers, and both words
// of an element by one walk through the rounds.
#pragma once

#include <optional>

#include "codegen/schedule/builder.h"

namespace bitale {

constexpr std::int64_t drawn_at_once = 64;

// A block of a loop in lanes.
struct DrawnWords {
    Stmts draws;  // at the beginning of a block
    Loop point;   // over the block
    Scalar body;  // of the nest, reading the words at the point
};

// Nothing where the body draws no words of neighbours along the loop. `begin`: the variable of the loop over
// blocks.
std::optional<DrawnWords> drawn_words(const Nest& nest, const Loop& along, const Int& begin,
                                      KernelBuilder& builder);

}  // namespace bitale
