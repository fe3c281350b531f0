// Loops of a GPU's kernel of which several turns' loads should be in flight.
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

// How many turns of a loop the compiler should unroll, so that a thread waits for their loads together: of an
// innermost serial loop of few operations that reads global memory and has no barrier. 1: it decides.
int turns_in_flight(const Stmt& loop, const std::vector<Place>& places);

}  // namespace bitale
