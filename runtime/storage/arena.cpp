#include "runtime/storage/arena.h"

#include <cstdlib>
#include <string>

#include "bitale/error.h"
#include "graph/base/memory.h"

namespace bitale {

Arena::~Arena() { std::free(base_); }

bool Arena::grow(std::int64_t bytes) {
    if (bytes <= bytes_) return false;
    constexpr std::int64_t page = 4096;
    const std::int64_t rounded = (bytes + page - 1) / page * page;
    std::free(base_);
    bytes_ = 0;
    base_ = static_cast<char*>(allocate_memory(static_cast<std::size_t>(rounded)));
    if (!base_)
        throw OutOfMemory("no memory for intermediate values of " + std::to_string(rounded) + " bytes");
    bytes_ = rounded;
    return true;
}

}  // namespace bitale
