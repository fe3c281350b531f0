// What a matrix product costs a CPU: by a call of the library, or as generated code among what is around it.
#pragma once

#include "codegen/program.h"

namespace bitale {

// Nanoseconds on one core of a present-day machine, for typical sizes: only which is less matters.
struct ProductCost {
    double library = 0, generated = 0;
};

// `passed`: elements that a call needs in memory, or leaves there, and that generated code would compute
// where it reads them, or use up where they arise.
ProductCost cost_of_product(const GemmCall& call, double passed);

}  // namespace bitale
