// Memory for tensors: aligned for vector registers, large blocks in huge pages.
#pragma once

#include <cstddef>

namespace bitale {

// 64-byte aligned, unspecified contents, given back with std::free; null where there is none. From 2 MB on in
// huge pages where the system has them: rows of a data set in random order are then found without a walk
// through page tables, which costs more than the row itself.
void* allocate_memory(std::size_t bytes);

}  // namespace bitale
