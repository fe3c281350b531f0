// Host memory for results: blocks by size class that are kept and used again. Fresh pages are slow.
#pragma once

#include <cstdint>

#include "bitale/array.h"

namespace bitale {

// An array with unspecified elements; its block returns to the pool with its last copy.
Array pooled_array(DType dtype, Dims shape);

// Bytes held for later use, and handed out.
struct HostMemory {
    std::int64_t kept = 0, used = 0;
};
HostMemory host_memory();

}  // namespace bitale
