// Thin products and sums on a GPU: pieces of the factors, or of the terms, computed by all threads of the
// block, lie in shared memory, and each of some threads keeps one result, or up to four, in registers over
// the whole sum:
//
//   for piece: { all threads: factors of n terms -> shared; barrier; for k < n: sum += a[k] * b[k]; barrier
//   }
#pragma once

#include <vector>

#include "codegen/schedule/member.h"

namespace bitale::gpu {

// Scratch that the pieces may take.
constexpr std::int64_t product_bytes = 16 << 10;

// A sum of products, long enough to be worth it, whose results are so few that a thread has four at most, and
// whose factors both serve several results, unless results are very few.
bool is_thin_product(const Nest& nest, const ReductionTree& tree);
// The same of other sums, maxima and minima, in the order of their terms, and of their places where they do
// not lie along rows, with fewer results than half of a block's threads: a single thread would wait for the
// loads of each of its terms.
bool is_thin_sum(const Nest& nest, const ReductionTree& tree);
// Whether there is shared memory beside what the segment's tasks have already.
bool has_room_for_pieces(const KernelBuilder& builder);
// Scratch with a partial result of each point, from which the sum goes on and where it ends.
struct PartialResults {
    int place;
    std::vector<Int> at;
};
Stmts schedule_thin(const Member& member, KernelBuilder& builder, const PartialResults* kept = nullptr);

// Results that one thread computes side by side, so that a factor is read once for all of them: along an axis
// that one factor does not vary along, or along one of each factor.
struct Sharing {
    int axis = -1;  // of the parallel loops
    std::int64_t results = 1;
};
std::vector<Sharing> shared_axes(const Nest& nest);

}  // namespace bitale::gpu
