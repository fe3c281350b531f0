// Products of small integers, by a library that holds every sum exactly.
#pragma once

#include "codegen/target.h"
#include "graph/ir/graph.h"

namespace bitale {

// sum(a * b) of integers of up to 16 bits that are cast and repeated along axes of the other one, as by
// sum(expand_dims(a, 2) * expand_dims(b, 0), 1), becomes a product of bytes in int32 where the target
// multiplies these (Target::has_gemm_int8), or else the sum of the same floats, cast back, where no partial
// sum can leave the integers that float32 holds, or float64. The result is the same whatever the order. Where
// a task calls the library (Target::library_in_tasks).
void multiply_integers(Graph& graph, const Target& target);

}  // namespace bitale
