// The arena of one compiled function: one block that grows and is kept.
#pragma once

#include <cstdint>

namespace bitale {

class Arena {
  public:
    Arena() = default;
    ~Arena();
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

    // At least `bytes`, 64-byte aligned; true when the block moved, its old contents then being lost. Throws
    // OutOfMemory, also where more than `limit` bytes of the host's memory would be alive, if it is not 0.
    bool grow(std::int64_t bytes, std::int64_t limit = 0);
    void drop();
    // That a block for so many bytes takes.
    static std::int64_t block_bytes(std::int64_t bytes);
    char* base() const { return base_; }
    std::int64_t bytes() const { return bytes_; }

  private:
    char* base_ = nullptr;
    std::int64_t bytes_ = 0;
};

}  // namespace bitale
