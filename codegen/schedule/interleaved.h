// Reductions in lanes of a few channels that lie interleaved, such as the colours of pixels. The channels of
// a term are neighbours in memory, and so are those of the next term: lanes run over both.
//
//     for each block of terms (16, or 64 where there are groups):
//         for each term, each channel:  spread[term][channel] = b[term], of what all channels share
//         for each lane:  parts[term][channel] with x[term][channel]
//     for half = 32, 16, 8, 4, 2, 1:  parts[term][channel] with parts[term + half][channel]
//
// These are the partial results, in their order, of each channel by itself.
#pragma once

#include <optional>
#include <vector>

#include "codegen/schedule/builder.h"
#include "codegen/schedule/member.h"

namespace bitale {

// Nothing where results are no such channels, or a read is neither interleaved nor the same for all terms.
std::optional<Stmts> schedule_interleaved(const Member& member, KernelBuilder& builder);
// Of a reduction in chunks: the partial results of one, to partial_place[to].
std::optional<SplitReduce> split_interleaved(const Member& member, KernelBuilder& builder, int partial_place,
                                             const std::vector<Int>& to);

}  // namespace bitale
