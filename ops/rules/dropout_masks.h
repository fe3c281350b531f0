// Behind a relu, dropout's result tells by itself which elements pass a gradient on: y = where(keep, relu(x)
// * scale, 0) is positive exactly where keep holds and x is positive. The gradient then reads y, which is in
// memory as the next layer needs it, and draws no random numbers a second time.
#pragma once

#include "graph/ir/graph.h"

namespace bitale {

// where(x > 0, where(keep, g, 0), 0) = where(y > 0, g, 0) for floats and scales of at least 1, which no
// product rounds to zero.
void mask_by_dropout(Graph& graph);

}  // namespace bitale
