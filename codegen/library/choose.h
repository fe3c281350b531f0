// Which values a library computes.
#pragma once

#include "codegen/group/values.h"
#include "codegen/target.h"
#include "codegen/tune/tuner.h"

namespace bitale {

// Fills in Value::library of products and convolutions that are worth a call, and marks what the calls read,
// which has to be stored. Where only a bias and a relu follow, the call computes these too.
// By estimates, or as the tuner measures (else null).
void choose_libraries(Values& values, const Graph& graph, const Target& target, Tuner* tuner);

}  // namespace bitale
