// Loops of a GPU's kernel of which several turns' loads should be in flight.
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

// How many turns of a loop the compiler should unroll, so that a thread waits for their loads together, and
// how many loads from global memory these are: of a serial loop that reads global or shared memory, or a loop
// over threads that reads global memory, without a barrier, and without loops inside but unrolled ones; at
// most 8 turns, 16 of a loop that reads shared memory alone, fewer the more operations a turn has, and no
// more than a thread of so many in a block surely takes. 1: the compiler decides.
struct LoadsInFlight {
    int turns = 1, loads = 0;
};
LoadsInFlight loads_in_flight(const Stmt& loop, const std::vector<Place>& places, int threads);

}  // namespace bitale
