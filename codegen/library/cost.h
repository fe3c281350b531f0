// What a matrix product costs a CPU: by a call of the library, or as generated code among what is around it.
#pragma once

#include "codegen/program.h"

namespace bitale {

// Nanoseconds on one core of a present-day machine, for typical sizes: only which is less matters.
struct ProductCost {
    double library = 0, generated = 0;
};

// `passed`: elements that a call needs in memory, or leaves there, and that generated code would compute
// where it reads them, or use up where they arise. `made`: elements of operands that slices of a call make in
// pieces (made.h), and generated code in its registers, for a few rows at a time.
ProductCost cost_of_product(const GemmCall& call, double passed, double made);

// What generated code takes in addition for so many elements of a factor that it computes from memory in
// which they lie apart: each task turns them for itself.
double cost_of_turning(const GemmCall& call, double apart);

// An element of a piece (made.h), by a loop that walks along memory.
constexpr double made_ns = 0.3;
// What all pieces of a call take: those of a are made once for each slice of columns, those of b once for
// each slice of rows.
double cost_of_pieces(const GemmCall& call);

}  // namespace bitale
