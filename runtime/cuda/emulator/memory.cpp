#include "runtime/cuda/emulator/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>

#include "runtime/cuda/emulator/checks.h"

namespace bitale::cuda {

namespace {

constexpr Status error_invalid_value = 1;
constexpr std::size_t alignment = 256;
// Around each block while accesses are checked: what misses one block does not hit another.
constexpr std::size_t guard_bytes = std::size_t{16} << 10;

struct Block {
    void* base = nullptr;
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::device;
    bool device() const { return kind == MemoryKind::device; }
};

struct Memory {
    std::mutex mutex;
    std::map<const void*, Block> blocks;  // by their first byte
    std::size_t used = 0, limit = 0;      // of the device
};
Memory& memory() {
    static Memory& m = *new Memory;
    return m;
}

Status allocate(void** block, std::size_t bytes, MemoryKind kind) {
    const bool device = kind == MemoryKind::device;
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    *block = nullptr;
    if (device && m.limit > 0 && m.used + bytes > m.limit) return error_out_of_memory;
    const std::size_t guard = emulator_checks() ? guard_bytes : 0;
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    void* base = nullptr;
    if (posix_memalign(&base, alignment, size + 2 * guard) != 0) return error_out_of_memory;
    *block = static_cast<char*>(base) + guard;
    std::memset(*block, 0xff, size);  // NaN: nobody may count on zeros
    m.blocks.emplace(*block, Block{base, bytes, kind});
    if (device) m.used += bytes;
    return success;
}

Status release(void* block, bool device) {
    if (!block) return success;
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    const auto at = m.blocks.find(block);
    if (at == m.blocks.end() || at->second.device() != device) return error_invalid_value;
    if (device) m.used -= at->second.bytes;
    std::free(at->second.base);
    m.blocks.erase(at);
    return success;
}

}  // namespace

Status allocate_device(void** block, std::size_t bytes) { return allocate(block, bytes, MemoryKind::device); }
Status release_device(void* block) { return release(block, true); }
Status allocate_host(void** block, std::size_t bytes) { return allocate(block, bytes, MemoryKind::host); }
Status allocate_mapped(void** block, std::size_t bytes) { return allocate(block, bytes, MemoryKind::mapped); }
Status release_host(void* block) { return release(block, false); }

void memory_left(std::size_t* free, std::size_t* total) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    *total = m.limit > 0 ? m.limit : std::size_t{1} << 34;
    *free = *total - std::min(*total, m.used);
}

void set_emulated_memory(std::int64_t bytes) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    m.limit = static_cast<std::size_t>(bytes);
}

MemoryKind memory_kind(const void* address, std::size_t bytes) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    const auto next = m.blocks.upper_bound(address);
    if (next == m.blocks.begin()) return MemoryKind::unknown;
    const auto& [begin, block] = *std::prev(next);
    const auto before =
        static_cast<std::size_t>(static_cast<const char*>(address) - static_cast<const char*>(begin));
    return before + bytes <= block.bytes ? block.kind : MemoryKind::unknown;
}

MemoryBlock block_near(const void* address) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    const auto at = [&](auto it) -> MemoryBlock {
        const std::size_t bytes = it->second.bytes;
        const std::size_t tail = it->second.device() ? std::min(tail_bytes, bytes) : 0;
        return {static_cast<const char*>(it->first), bytes, bytes - tail};
    };
    const char* const wanted = static_cast<const char*>(address);
    const auto next = m.blocks.upper_bound(address);
    MemoryBlock near;
    if (next != m.blocks.begin()) near = at(std::prev(next));
    if (near.holds(address) || next == m.blocks.end()) return near;
    const MemoryBlock after = at(next);
    return !near.begin || after.begin - wanted < wanted - (near.begin + near.bytes) ? after : near;
}

}  // namespace bitale::cuda
