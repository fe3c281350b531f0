// Copies of what a task reads many times: the statements that make them, the reads of them, and the rows of a
// task that both speak of.
#pragma once

#include <functional>
#include <vector>

#include "codegen/schedule/staging.h"

namespace bitale {

// Which rows of the first axis a task has: `block` from row task * block on.
struct TaskRows {
    Int task;
    std::int64_t block = 1;

    // An index over the whole first axis as one into scratch that holds one block of rows, and back.
    std::vector<Int> inside(std::vector<Int> at) const;
    std::vector<Int> whole(std::vector<Int> at) const;
    // The parallel loops of a nest over the whole first axis, cut down to these rows.
    Nest cut(const Nest& nest) const;
};

// Makes the copy, in a place of its own. `placed`: a nest whose reads are of places.
Stmts make_copy(StagedCopy& copy, const TaskRows& rows, const SegmentContext& context, KernelBuilder& builder,
                const std::function<Nest(const Nest&)>& placed);

// A read of the value as a read of its copy.
Scalar read_copy(const ScalarNode& s, const StagedCopy& copy, const TaskRows& rows);

}  // namespace bitale
