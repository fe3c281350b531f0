// Sums of products of which one factor is read at places that are known only at run time, as a convolution's
// gradient through the winners of max-pooling is. The results that differ by a fixed distance from such a
// place, all taps and channels of a filter, stay in vector registers over the whole sum; each iteration loads
// them from there and multiplies them by one element of the other factor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/lanes.h"
#include "codegen/schedule/member.h"

namespace bitale {

struct WinnersPlan {
    int factor = 0;           // of the product: the one at places that the lets give
    int axis = -1;            // the loop over results that runs in lanes
    std::int64_t width = 1;   // lanes of a register
    std::vector<int> around;  // loops over results along which the places or the other factor vary
    std::vector<int> taps;    // those that move a fixed distance from a place
    std::int64_t most = 1;    // registers that results may take
    std::int64_t band = 0;    // iterations of the first loop of the sum at a time; 0: all
};

// The last loop over results the other way round where everything it reads lies backwards, as under filters
// that are flipped; `at`, over its variables, says where results belong.
Nest walking_forward(const Nest& nest, std::vector<Int>& at);

// Nothing where the sum has no lets, or that factor has no neighbours of results in memory.
std::optional<WinnersPlan> plan_winners(const Member& member, const Target& target,
                                        const KernelBuilder& builder);
// The results of the member's loops, to its only destination.
Stmts schedule_winners(const WinnersPlan& plan, const Member& member, KernelBuilder& builder, TileUse use);

}  // namespace bitale
