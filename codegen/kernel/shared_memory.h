// Where the scratch of a task lies in the shared memory of a block. Places whose uses are apart share bytes,
// where all threads pass a barrier between the last use of the first and the first use of the second.
#pragma once

#include <cstdint>
#include <map>

#include "codegen/kernel/ir.h"

namespace bitale {

struct SharedMemory {
    std::map<int, std::int64_t> offsets;  // of the local places that the segment uses, in bytes
    std::int64_t bytes = 0;
};

// No more bytes than the places that are used across several statements of the segment need side by side,
// and the largest of those with uses in a single statement that ends with a barrier, each a multiple of 16.
SharedMemory shared_memory_of(const KernelIR& kernel, const Segment& segment);

}  // namespace bitale
