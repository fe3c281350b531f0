// A function over the rows of a batch as functions over a few of them at a time:
//
//     for each pass:
//         for first from 0 below rows by micro-batch:
//             outputs of rows [first, first + count), totals <- totals combined with those of these rows
//     outputs and updates from the totals
#pragma once

#include <vector>

#include "graph/ir/graph.h"
#include "graph/ir/nest.h"
#include "graph/walk/traverse.h"

namespace bitale {

struct MicroBatches {
    // What a pass adds up: a shared variable of the function's own, which the pass updates.
    struct Total {
        SharedPtr variable;
        Combine combine = Combine::sum;
    };
    // An output of a pass: rows of an output of the function, of so many elements along this axis.
    struct Rows {
        std::size_t output = 0;
        int axis = 0;
        std::int64_t elements = 1;
    };
    struct Pass {
        Graph graph;
        std::vector<Total> totals;
        std::vector<Rows> rows;  // of the first outputs; one more may be there to wait for
    };
    std::vector<Pass> passes;
    Graph finale;                    // what is computed once, from the totals; has all updates
    std::vector<std::size_t> whole;  // its outputs, as outputs of the function
    // Inputs of each graph are those of the function, then three int64 scalars: first row, number of rows of
    // the part, number of all rows.
    Int rows;  // number of all rows, over the symbols of the function's inputs
};

// `graph` consists of primitives. Its inputs beyond the first `inputs` stand for other expressions
// (`stand_ins`), of whose rows a pass computes those that it needs. Throws GraphError with the line of the
// node that needs all rows at once.
MicroBatches micro_batches(const Graph& graph, std::size_t inputs, const NodeMap& stand_ins, Where where);

// What each element of a total begins with: an array of one.
Array beginning_of(const MicroBatches::Total& total);

}  // namespace bitale
