// Schedules of one value inside a block of threads. Points of the result are strided over the threads; the 16
// lanes of a reduction are 16 threads, whose partial results meet through the warp.
#pragma once

#include "codegen/schedule/member.h"

namespace bitale::gpu {

Stmts schedule_pointwise(const Member& member);
Stmts schedule_reduce(const Member& member, KernelBuilder& builder);

// The chunks of a split reduction whose rows need no copy in scratch: as many in one task as give a block
// something to do, each complete in registers. `row` is the split loop's variable in the member's nest, of
// `extent` iterations in all.
std::optional<Stmts> schedule_chunks(const Member& member, KernelBuilder& builder, int partial_place,
                                     const Int& row, const Int& extent, Segment& segment);
// With rows that are copied to scratch one after another.
SplitReduce schedule_split(const Member& member, KernelBuilder& builder, int partial_place, const Int& chunk);
Int tasks_of_finish(const Member& member, const KernelBuilder& builder);
Stmts schedule_finish(const Member& member, KernelBuilder& builder, int partial_place, const Int& chunks,
                      const Int& task);

}  // namespace bitale::gpu
