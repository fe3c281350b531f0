// What the tasks of a segment cost on one core of a CPU: an estimate to share work out by.
#pragma once

#include "codegen/kernel/ir.h"
#include "codegen/target.h"

namespace bitale {

// Picoseconds of one whole task (the last one may be cut short), from the operations that it runs, in vector
// lanes where its loops do, with operands out of caches. Never zero. For shares of threads and for what is
// not worth sharing: right within a factor of two or three.
Int work_of(const KernelIR& kernel, const Segment& segment, const Target& target);

}  // namespace bitale
