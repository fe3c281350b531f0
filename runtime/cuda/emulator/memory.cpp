#include "runtime/cuda/emulator/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/cuda/emulator/checks.h"
#include "runtime/cuda/emulator/stream.h"

namespace bitale::cuda {

namespace {

constexpr std::size_t alignment = 256;
// Around each block while accesses are checked: what misses one block does not hit another.
constexpr std::size_t guard_bytes = std::size_t{16} << 10;

struct Block {
    void* base = nullptr;
    std::size_t bytes = 0;
    MemoryKind kind = MemoryKind::device;
    int owner = no_device;  // of device memory
    std::unique_ptr<WrittenBytes> written;
    bool device() const { return kind == MemoryKind::device; }
};

struct Memory {
    std::mutex mutex;
    std::map<const void*, Block> blocks;  // by their first byte
    std::map<int, std::size_t> used;      // of each device
    std::size_t limit = 0;                // of each device alike
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
    const int owner = device ? chosen_device() : no_device;
    if (device && m.limit > 0 && m.used[owner] + bytes > m.limit) return error_out_of_memory;
    const std::size_t guard = emulator_checks() ? guard_bytes : 0;
    const std::size_t size = std::max<std::size_t>(bytes, 1);
    void* taken = nullptr;
    if (posix_memalign(&taken, alignment, size + 2 * guard) != 0) return error_out_of_memory;
    const auto free = [](void* p) { std::free(p); };
    std::unique_ptr<void, decltype(free)> base(taken, free);
    char* const first = static_cast<char*>(taken) + guard;
    std::memset(first, 0xff, size);  // NaN: nobody may count on zeros
    Block made{taken, bytes, kind, owner, nullptr};
    if (device && emulator_checks()) made.written = std::make_unique<WrittenBytes>(bytes);
    std::size_t* const used = device ? &m.used[owner] : nullptr;
    m.blocks.emplace(first, std::move(made));
    if (used) *used += bytes;
    base.release();
    *block = first;
    return success;
}

Status release(void* block, bool device) {
    if (!block) return success;
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    const auto at = m.blocks.find(block);
    if (at == m.blocks.end() || at->second.device() != device) return error_invalid_value;
    if (device) m.used[at->second.owner] -= at->second.bytes;
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
    *free = *total - std::min(*total, m.used[chosen_device()]);
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

namespace {

// The account of the block that holds the range, and where the range begins in it.
struct Account {
    WrittenBytes* written = nullptr;
    std::size_t first = 0;
};
Account account_of(const void* address, const MemoryBlock& block) {
    if (!block.begin || !block.holds(address)) return {};
    return {block.written, static_cast<std::size_t>(static_cast<const char*>(address) - block.begin)};
}
Account account_of(const void* address) { return account_of(address, block_near(address)); }

}  // namespace

void mark_written(const void* address, std::size_t bytes) {
    if (const Account a = account_of(address); a.written && bytes > 0) a.written->mark(a.first, bytes);
}

void mark_block_written(const void* address) {
    const MemoryBlock block = block_near(address);
    if (const Account a = account_of(address, block); a.written) a.written->mark(0, block.bytes);
}

void mark_device_written(int device) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    for (auto& [begin, block] : m.blocks)
        if (block.owner == device && block.written) block.written->mark(0, block.bytes);
}

void copy_written(const void* to, const void* from, std::size_t bytes) {
    const Account there = account_of(to), here = account_of(from);
    if (!there.written) return;
    if (here.written)
        there.written->copy(there.first, bytes, *here.written, here.first);
    else
        there.written->mark(there.first, bytes);
}

std::string unwritten_in(const void* address, std::size_t bytes) {
    const MemoryBlock block = block_near(address);
    const Account a = account_of(address, block);
    const std::optional<std::size_t> gap = a.written ? a.written->gap(a.first, bytes) : std::nullopt;
    return gap ? fmt::format("byte {} of a block of {} bytes", *gap, block.writable) : "";
}

int device_of(const void* address) {
    const MemoryBlock block = block_near(address);
    return block.begin && block.holds(address) ? block.device : no_device;
}

MemoryBlock block_near(const void* address) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    const auto at = [&](auto it) -> MemoryBlock {
        const std::size_t bytes = it->second.bytes;
        const std::size_t tail = it->second.device() ? std::min(tail_bytes, bytes) : 0;
        return {static_cast<const char*>(it->first), bytes, bytes - tail, it->second.owner,
                it->second.written.get()};
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
