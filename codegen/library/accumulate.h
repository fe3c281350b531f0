// Updates that a product's call can make by itself: c = alpha * a . b + beta * c.
#pragma once

#include <optional>

#include "graph/ir/nest.h"

namespace bitale {

struct ScaledSum {
    double alpha = 1, beta = 0;
    int old = -1;  // the operand that takes part beside the product
};

// Of a map of two axes that adds or subtracts the product and one other operand at its own point, each of
// them by itself or times a constant; all floats of one width.
std::optional<ScaledSum> accumulation_of(const Nest& map, int product);

}  // namespace bitale
