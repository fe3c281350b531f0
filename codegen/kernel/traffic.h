// What a kernel moves: the distinct bytes of each buffer that it reads and writes.
#pragma once

#include <vector>

#include "codegen/kernel/ir.h"

namespace bitale {

// By position in the launch's buffer list. An element counts once, however often and by however many tasks it
// is touched: what caches can serve is left to them. Of rows that are found at run time (a gather, a
// minibatch), as many count as there are indices. Where the indices cannot be told, the whole axis counts:
// these are upper bounds.
struct Traffic {
    std::vector<Int> read, written;
};
Traffic traffic_of(const KernelIR& kernel);

}  // namespace bitale
