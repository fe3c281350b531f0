// Copies of what a task reads many times: the statements that make them, the reads of them, and the rows of a
// task that both speak of. Indices stay those of the whole value.
#pragma once

#include <functional>
#include <vector>

#include "codegen/schedule/staging.h"

namespace bitale {

// Which rows of the first axis a task has: `block` from row task * block on.
struct TaskRows {
    Int task;
    std::int64_t block = 1;

    // An index over the loops of a nest that is cut down to these rows, as one over the whole first axis.
    std::vector<Int> whole(std::vector<Int> at) const;
    // The parallel loops of a nest over the whole first axis, cut down to these rows.
    Nest cut(const Nest& nest) const;
    // What scratch has of a value of this shape, and how long it is then.
    Part part() const;
    Shape shape(Shape whole) const;
};

// Makes the copy, in a place of its own. `placed`: a nest whose reads are of places.
Stmts make_copy(StagedCopy& copy, const TaskRows& rows, const SegmentContext& context, KernelBuilder& builder,
                const std::function<Nest(const Nest&)>& placed);

// A read that was sent to the copy, of its place.
Scalar read_copy(const ScalarNode& s, const StagedCopy& copy);

}  // namespace bitale
