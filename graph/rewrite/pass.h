// Passes: the steps of a pipeline as a literal list, and what runs them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace bitale {

struct Pass {
    std::string name;  // BITALE_FLAGS=disable=name leaves it out
    std::function<void(Graph& graph)> run;
    // What holds afterwards; throws InternalError. Runs where Options::verifies, unless the pass is left out.
    std::function<void(const Graph& graph)> establishes = nullptr;
    bool renames_lengths = false;  // results keep dtype and rank; other passes keep their whole types
};

// Runs the passes in order: leaves out the disabled ones, and, as the options ask, times them, prints or
// writes the graph where one changed it, and verifies. Types of outputs and updates must stay what they are,
// lengths aside where the pass renames lengths.
void run_passes(Graph& graph, const std::vector<Pass>& passes);

// One line per node: "%3 = log_softmax(%2) {axis: 1} : float32 [n, 10]  # net.cpp:12; log-softmax".
// Deterministic.
std::string listing(const Graph& graph);

}  // namespace bitale
