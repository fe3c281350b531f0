// The order of a reduction: a tree fixed by the nest alone, chosen once for all devices; every schedule obeys
// it.
//
//   split    the first reduced loop is cut into chunks; each chunk is reduced by itself, then the partial
//            results: chunk c adds to lane c mod `finish_lanes`
//   by_rows  within a chunk, each iteration of the split loop is reduced by itself, then those in order
//   lanes    within that, iteration r of the last reduced loop adds to partial result r mod lanes; the
//            partial results are combined as 8+, 4+, 2+, 1+ at the end
//   groups   so many partial results a lane: r adds to number r mod (groups * lanes), and 32+, 16+ come
//            first. One after another, additions would wait for each other
// Otherwise iterations combine one after another, the last reduced loop fastest.
#pragma once

#include "codegen/nest/access.h"

namespace bitale {

struct ReductionTree {
    bool split = false, by_rows = false;
    Int chunk;             // iterations of the first reduced loop
    int lanes = 1;         // 1 or 16
    int groups = 1;        // 1 or 4
    int finish_lanes = 1;  // likewise, over the chunks
};

ReductionTree tree_of(const Nest& nest, const ShapeOf& shape_of);
// Where tasks are blocks of threads: positions are the same in every order, and a thread looks for its own;
// so are sums of integers, of which each block adds some rows.
ReductionTree tree_of_threads(const Nest& nest, const ShapeOf& shape_of);
// Cut into chunks, with enough rows of results to occupy every core of a CPU: there one task reduces all
// chunks of its rows.
bool has_many_rows(const Nest& nest, const ReductionTree& tree);

// A sum of small integers that were cast to floating point adds the integers themselves and rounds once:
// exact in any order.
Nest exact_sum(const Nest& nest);

// A long reduction over one axis as rows of 1,024, so that it can be split and still run in lanes. With
// `of_data`, products of small matrices over an axis of unknown length as rows of 256, too: such an axis is a
// data set, where that of a gradient is a batch.
Nest in_rows(const Nest& nest, bool of_data);

}  // namespace bitale
