// What gradients compute again, instead of reading what the forward pass has kept for them, so that a
// function fits a limit of memory. checkpoint(x) says so in the expression; here the graph tells what is
// worth it.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/ir/graph.h"

namespace bitale {

// How much of the forward pass. What lies between products, convolutions and the like, up to the next of
// them, is a stage.
struct Recomputation {
    // 0: values that take little to compute from the products, which are kept. Else the stages are cut into
    // so many segments; kept is what a segment hands on to later ones, and computed again what else gradients
    // read, but for that of the last segment.
    int segments = 0;
};

// Numbers, vectors, and one number for each channel or row.
bool is_small(const Node& node);

// Those worth a try, for a graph of primitives; none where no gradient reads what could be computed again.
std::vector<Recomputation> recomputations(const Graph& graph);

// Rewrites a graph of primitives so: gradients read copies that begin at again(x, after) (modifiers.h), with
// the same values. Returns how many values are copied.
std::size_t recompute(Graph& graph, const Recomputation& how);

}  // namespace bitale
