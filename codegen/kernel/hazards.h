// What tasks that run at once must not do: one writes what another reads.
#pragma once

#include <set>

#include "codegen/kernel/ir.h"

namespace bitale {

// Positions in the launch's buffer list.
struct Touched {
    std::set<int> read, written;
    void merge(Touched other) {
        read.merge(other.read);
        written.merge(other.written);
    }
};
Touched touched_by(const KernelIR& kernel, const Segment& segment);

// InternalError where a segment writes a buffer that another segment of the same phase reads: the tasks of a
// phase run in any order, and at once.
void verify_phases(const KernelIR& kernel);

}  // namespace bitale
