// Host memory for results: blocks by size class that are kept and used again. Fresh pages are slow.
#pragma once

#include <cstdint>
#include <functional>

#include "bitale/array.h"

namespace bitale {

// An array with unspecified elements, behind which there are 64 bytes of zeros; its block returns to the pool
// with its last copy. Throws OutOfMemory, also where more than `limit` bytes of the host's memory would be
// alive, if it is not 0.
Array pooled_array(DType dtype, Dims shape, std::int64_t limit = 0);
// As pooled_array, of zeros, in a block that is free with the last copy.
Array limited_array(DType dtype, Dims shape, std::int64_t limit);
// That the block of an array of so many bytes takes.
std::int64_t pooled_bytes(std::int64_t bytes);

// As allocate_memory; where it has none, once more without the blocks that are kept for later use.
void* allocate_or_trim(std::size_t bytes, std::int64_t limit = 0);

// Gives back the blocks that are kept; whether there were any.
bool trim_host_memory();

// Who keeps memory from call to call gives back, when asked, all that no call is using: `give_back` takes no
// locks and allocates nothing. It is not asked any more once this ends.
class IdleMemory {
  public:
    explicit IdleMemory(std::function<void()> give_back);
    ~IdleMemory();
    IdleMemory(const IdleMemory&) = delete;
    IdleMemory& operator=(const IdleMemory&) = delete;
    // Asks all of them.
    static void give_all_back();

  private:
    const std::function<void()> give_back_;
    IdleMemory *before_ = nullptr, *after_ = nullptr;
};

// Bytes held for later use, and handed out.
struct HostMemory {
    std::int64_t kept = 0, used = 0;
};
HostMemory host_memory();

}  // namespace bitale
