#include "graph/base/memory.h"

#include <sys/mman.h>

#include "graph/base/outside.h"

namespace bitale {

void* allocate_memory(std::size_t bytes) {
    constexpr std::size_t line = 64, huge_page = std::size_t{2} << 20;
    void* p = outside::aligned_memory(bytes >= huge_page ? huge_page : line, bytes);
    if (!p) return nullptr;
#if defined(MADV_HUGEPAGE)
    // Advice only: a system without huge pages serves small ones. What begins after the last whole one stays
    // in small ones, so that a block takes no more memory than it needs.
    if (bytes >= huge_page) madvise(p, bytes / huge_page * huge_page, MADV_HUGEPAGE);
#endif
    return p;
}

}  // namespace bitale
