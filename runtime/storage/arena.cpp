// Allocation in huge pages where they help.
#include "runtime/storage/arena.h"

#include <sys/mman.h>

#include <cstdlib>
#include <string>

#include "bitale/error.h"

namespace bitale {

namespace {

constexpr std::int64_t huge_page = std::int64_t{2} << 20;

}  // namespace

Arena::~Arena() { std::free(base_); }

bool Arena::grow(std::int64_t bytes) {
    if (bytes <= bytes_) return false;
    const std::int64_t unit = bytes >= huge_page ? huge_page : 4096;
    const std::int64_t rounded = (bytes + unit - 1) / unit * unit;
    std::free(base_);
    bytes_ = 0;
    base_ = static_cast<char*>(
        std::aligned_alloc(static_cast<std::size_t>(unit), static_cast<std::size_t>(rounded)));
    if (!base_)
        throw OutOfMemory("no memory for intermediate values of " + std::to_string(rounded) + " bytes");
    // Advice only: a system without huge pages serves small ones.
    if (unit == huge_page) madvise(base_, static_cast<std::size_t>(rounded), MADV_HUGEPAGE);
    bytes_ = rounded;
    return true;
}

}  // namespace bitale
