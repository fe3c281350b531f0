// Which rows of a parameter a step looks up.
#pragma once

#include <optional>

#include "ops/dsl/compose.h"

namespace bitale {

struct LazyRows {
    Expr reached;   // booleans [rows, 1, ...], true where a lookup has read the row, whatever gradient it got
    Term gradient;  // the same numbers, but single rows are lookups too: a step visits no other row
};

// For a parameter that the loss reads by lookups alone, once or several times: `parameter[indices]`, or
// `parameter[k]` with a scalar that only a call tells. Of `lookups`, its gradient [rows, ...] as
// differentiation gives it, and `gradient`, what has been made of that. Nothing for other parameters, whose
// gradients reach every row.
std::optional<LazyRows> lazy_rows_of(const Term& lookups, const Term& gradient);

}  // namespace bitale
