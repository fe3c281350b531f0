// Thin products and sums on a GPU: pieces of the factors, or of the terms, computed by all threads of the
// block, lie in shared memory, and each of some threads keeps one result in a register over the whole sum:
//
//   for piece: { all threads: factors of 64 terms -> shared; barrier; for k < 64: sum += a[k] * b[k]; barrier
//   }
#pragma once

#include "codegen/schedule/member.h"

namespace bitale::gpu {

// Scratch that the pieces may take.
constexpr std::int64_t product_bytes = 16 << 10;

// A sum of products in one loop, long enough to be worth it, whose results are few enough to have a thread
// each, and whose factors both serve several results.
bool is_thin_product(const Nest& nest, const ReductionTree& tree);
// The same of other sums, maxima and minima, in the order of their terms, with fewer results than half of a
// block's threads: a single thread would wait for the loads of each of its terms.
bool is_thin_sum(const Nest& nest, const ReductionTree& tree);
Stmts schedule_thin(const Member& member, KernelBuilder& builder);

// Results that one thread computes side by side, so that a factor is read once for all of them.
struct Sharing {
    int axis = -1;  // of the parallel loops; -1: none
    std::int64_t results = 1;
};
Sharing shared_axis(const Nest& nest);

}  // namespace bitale::gpu
