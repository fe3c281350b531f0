#include "runtime/storage/arena.h"

#include <fmt/format.h>

#include "bitale/error.h"
#include "graph/base/memory.h"
#include "runtime/storage/host_memory.h"

namespace bitale {

std::int64_t Arena::block_bytes(std::int64_t bytes) {
    constexpr std::int64_t page = 4096;
    return (bytes + page - 1) / page * page;
}

Arena::~Arena() { drop(); }

void Arena::drop() {
    free_memory(base_, static_cast<std::size_t>(bytes_));
    base_ = nullptr;
    bytes_ = 0;
}

bool Arena::grow(std::int64_t bytes, std::int64_t limit) {
    if (bytes <= bytes_) return false;
    const std::int64_t rounded = block_bytes(bytes);
    drop();
    base_ = static_cast<char*>(allocate_or_trim(static_cast<std::size_t>(rounded), limit));
    if (!base_) throw OutOfMemory(fmt::format("no memory for intermediate values of {} bytes", rounded));
    bytes_ = rounded;
    return true;
}

}  // namespace bitale
