// Batches that are slices of data, as in data[Slice{i*n, (i+1)*n}]: their length is computed from scalars and
// clipped, so it is no symbol of an input.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/walk/traverse.h"

namespace bitale {

// The same graph with inputs of an unknown first length in place of slices.
struct SlicedBatch {
    Graph graph;
    NodeMap stand_ins;         // slices, by the inputs that take their places
    std::uint64_t symbol = 0;  // the first length of these inputs
};

// One for each length that slices of variables and arguments have.
std::vector<SlicedBatch> sliced_batches(const Graph& graph);

}  // namespace bitale
