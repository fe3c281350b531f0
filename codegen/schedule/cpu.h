// Schedules of one value inside a task of one thread: nested loops, the innermost one in vector lanes.
#pragma once

#include "codegen/schedule/member.h"

namespace bitale::cpu {

Stmts schedule_pointwise(const Member& member, const Target& target, KernelBuilder& builder);
Stmts schedule_reduce(const Member& member, const Target& target, KernelBuilder& builder);
std::optional<Stmts> schedule_with_positions(const Member& member, const Member& also, const Target& target,
                                             KernelBuilder& builder);
SplitReduce schedule_split(const Member& member, const Target& target, KernelBuilder& builder,
                           int partial_place, const Int& chunk);
// Of bytes that follow each other in memory, where each chunk is one run, and of products of matrices, of
// which tiles of results stay in registers:
//     for tiles of results: for rows of the chunk: result 0 += ..., result 1 += ...
std::optional<Stmts> schedule_chunks(const Member& member, const Target& target, KernelBuilder& builder,
                                     int partial_place, const Int& row, const Int& extent, Segment& segment);
Int tasks_of_finish(const Member& member, const KernelBuilder& builder);
Stmts schedule_finish(const Member& member, KernelBuilder& builder, int partial_place, const Int& chunks,
                      const Int& task);

}  // namespace bitale::cpu
