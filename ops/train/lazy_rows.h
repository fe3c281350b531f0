// Which rows of a parameter a step looks up.
#pragma once

#include "ops/dsl/compose.h"

namespace bitale {

// Of the gradient [rows, ...] of a parameter that the loss reads by lookups alone (`parameter[indices]`, once
// or several times): booleans [rows, 1, ...], true where a lookup has read the row, whatever gradient it got.
// Null for other gradients: they reach every row.
Expr rows_looked_up(const Term& gradient);

}  // namespace bitale
