// Crossentropies of a softmax or a sigmoid, of which the public header says that they never overflow: a
// property of the composition, so the typed oracle has a formula of its own for it. The rules that make
// compiled functions keep the same promise are ops/rules/stabilize_crossentropy.cpp.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

// The graph with each of these computed from the logits.
Nodes with_stable_losses(const Nodes& roots);

}  // namespace bitale
