#include "graph/base/memory.h"

#include <sys/mman.h>

#include <cstdlib>

#include "graph/base/outside.h"

namespace bitale {

bool MemoryLedger::take(std::int64_t bytes, std::int64_t limit) noexcept {
    constexpr std::int64_t more_than_there_is = std::int64_t{1} << 56;
    if (bytes >= more_than_there_is) return false;
    const std::int64_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (limit <= 0 || now <= limit) return true;
    give(bytes);
    return false;
}

void MemoryLedger::taken() noexcept {
    const std::int64_t now = this->now();
    std::int64_t most = most_.load(std::memory_order_relaxed);
    while (most < now && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) continue;
}

MemoryLedger& host_ledger() {
    constinit static MemoryLedger ledger;
    return ledger;
}

void* allocate_memory(std::size_t bytes, std::int64_t limit) {
    constexpr std::size_t line = 64, huge_page = std::size_t{2} << 20;
    if (!host_ledger().take(static_cast<std::int64_t>(bytes), limit)) return nullptr;
    void* p = outside::aligned_memory(bytes >= huge_page ? huge_page : line, bytes);
    if (!p) {
        host_ledger().give(static_cast<std::int64_t>(bytes));
        return nullptr;
    }
    host_ledger().taken();
#if defined(MADV_HUGEPAGE)
    // Advice only: a system without huge pages serves small ones. What begins after the last whole one stays
    // in small ones, so that a block takes no more memory than it needs.
    if (bytes >= huge_page) madvise(p, bytes / huge_page * huge_page, MADV_HUGEPAGE);
#endif
    return p;
}

void free_memory(void* p, std::size_t bytes) noexcept {
    if (!p) return;
    host_ledger().give(static_cast<std::int64_t>(bytes));
    std::free(p);
}

}  // namespace bitale
