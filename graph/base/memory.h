// Memory for tensors: aligned for vector registers, large blocks in huge pages, and counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace bitale {

// What is alive of one kind of memory. By several threads at once.
class MemoryLedger {
  public:
    // Counts them, before they are asked for. False, and nothing is counted, where that would be more than
    // `limit`; 0: there is none.
    bool take(std::int64_t bytes, std::int64_t limit = 0) noexcept;
    void taken() noexcept;  // they are there
    void give(std::int64_t bytes) noexcept { now_.fetch_sub(bytes, std::memory_order_relaxed); }

    std::int64_t now() const { return now_.load(std::memory_order_relaxed); }
    std::int64_t most() const { return most_.load(std::memory_order_relaxed); }  // since forget_most()
    void forget_most() { most_.store(now(), std::memory_order_relaxed); }

  private:
    std::atomic<std::int64_t> now_{0}, most_{0};
};

// That of the host: all arrays, arenas, results and workspaces of products.
MemoryLedger& host_ledger();

// 64-byte aligned, unspecified contents, given back with free_memory; null where there is none, or where more
// than `limit` bytes would be alive, if it is not 0. From 2 MB on in huge pages where the system has them:
// rows of a data set in random order are then found without a walk through page tables, which costs more than
// the row itself.
void* allocate_memory(std::size_t bytes, std::int64_t limit = 0);
void free_memory(void* p, std::size_t bytes) noexcept;  // the bytes that it was allocated with

}  // namespace bitale
