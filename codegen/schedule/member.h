// Schedules of one value inside a task: loops around its scalar body. A CPU runs nested loops with the
// innermost one in vector lanes; a GPU spreads the points of a value over the threads of a block. Both obey
// the nest's tree.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codegen/kernel/ir.h"
#include "codegen/nest/tree.h"
#include "codegen/target.h"

namespace bitale {

struct Destination {
    int place = -1;
    std::vector<Int> at;  // over the variables of the member's loops
};

// A nest placed in a task: reads are numbered by place, outer variables are bound by the segment.
struct Member {
    Nest nest;  // parallel: all loops that run inside the task
    std::vector<Destination> destinations;
    ReductionTree tree;
    bool past = false;       // the result is larger than what caches hold until somebody reads it
    bool scattered = false;  // of a sum that skips the zeros of one factor (scatter.h)
};

// Rows of its group's first axis that are best for a task that computes the member, and how many it needs not
// to leave lanes, or what they have loaded, unused.
struct RowsOfMember {
    std::int64_t best = 1, fewest = 1;
};

class KernelBuilder;

// combine == none: one pass over the points.
Stmts schedule_pointwise(const Member& member, const Target& target, KernelBuilder& builder);
// A reduction that is complete within the task.
Stmts schedule_reduce(const Member& member, const Target& target, KernelBuilder& builder);
// Best elements and their positions, the second over the loops of the first, from one walk over what they
// read; nothing where there is no schedule for both.
std::optional<Stmts> schedule_with_positions(const Member& member, const Member& also, const Target& target,
                                             KernelBuilder& builder);

// A reduction cut into chunks: `before` declares and clears the partial results of the chunk, `inside` runs
// for each iteration of the split loop, `after` stores them at `partial` (the chunk's number first).
struct SplitReduce {
    Stmts before, inside, after;
};
SplitReduce schedule_split(const Member& member, const Target& target, KernelBuilder& builder,
                           int partial_place, const Int& chunk);
// The second phase: partial results of all chunks, in order, for the results of one task.
Int tasks_of_finish(const Target& target, const Member& member, const KernelBuilder& builder);
Stmts schedule_finish(const Member& member, const Target& target, KernelBuilder& builder, int partial_place,
                      const Int& chunks, const Int& task);

// The value to every destination.
Stmts stores(const Member& member, const Scalar& value);
// Scalar with which a combine starts.
Scalar neutral(Combine combine, DType dtype);
DType accumulator_of(const Nest& nest);
// The loop best run in vector lanes, -1 if there is none; a destination's last axis counts as a unit-stride
// access.
int vector_loop(const Nest& nest, const ShapeOf& shape_of);
// Of a map whose last loop has few elements, which lie apart, and computes much for each: the loop whose
// neighbours fill the lanes, though results are then stored apart. -1: there is none.
int longer_lanes(const Nest& nest, const ShapeOf& shape_of);

}  // namespace bitale
