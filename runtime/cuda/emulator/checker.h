// Watches the accesses of a launch: each must lie in memory that the kernel may touch, what is read must have
// been written, and two of different threads, at least one of them writing, must be ordered by a barrier or
// both be atomic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/cuda/emulator/memory.h"
#include "runtime/cuda/emulator/module.h"
#include "runtime/cuda/emulator/state.h"

namespace bitale::cuda {

// Blocks run one after another and barriers cut the run of a block into intervals, numbered through the
// launch. So what is remembered of each cell (4 bytes, or 1 where bytes are accessed) is enough to see every
// pair: the last write, the first reader of the launch (for later blocks), and two readers of the last
// interval. Only __syncwarp orders lanes of a warp: CUDA says of shuffles and votes that they do not.
class Checker {
  public:
    // `arguments` are as a launch has them.
    void begin_launch(const EmulatedKernel& kernel, unsigned threads, int device, void** arguments);
    void begin_block(unsigned number);
    void next_interval();                      // every thread has come to a barrier
    void met(unsigned first, unsigned lanes);  // in __syncwarp: some lanes of the warp that begins there
    // False when the access is wrong; problem() says why.
    bool access(const void* address, std::size_t bytes, AccessKind kind, const void* code, unsigned thread);
    const std::string& problem() const { return problem_; }

  private:
    static constexpr unsigned warp_size = 32;
    static constexpr std::size_t page_bytes = 4096, cached_pages = 256, most_pages = 4096;

    struct Access {
        std::uint32_t interval = 0;  // 0: none
        std::uint32_t thread : 10 = 0, clock : 8 = 0, site : 14 = 0;
    };
    struct Cell {
        Access write, first_reader;
        std::array<Access, 2> readers;
    };
    struct Page {
        std::uint64_t launch = 0;
        bool bytewise = false, atomics = false;
        std::vector<Cell> cells;
    };
    struct Atomics {
        Access first;
        std::array<Access, 2> last;
    };
    // The memory that an access lies in.
    struct Region {
        MemoryBlock block;
        const SharedArray* shared = nullptr;
    };
    struct Now {
        const char* address;
        std::size_t bytes;
        AccessKind kind;
        Access access;
        const Region& region;
    };

    const Region* region_of(const char* address);
    bool unwritten(const Now& now, std::size_t offset);
    bool foreign(const Region& region, const char* address, std::size_t bytes, AccessKind kind,
                 const void* code, unsigned thread);
    bool out_of_bounds(const char* address, std::size_t bytes, AccessKind kind, const void* code,
                       unsigned thread);
    Page& page_at(std::uintptr_t number);
    bool visit(const Now& now, Cell& cell, Page& page, const char* at);
    bool visit_atomics(const Now& now, const char* at);
    void note_reader(const Access& access, std::array<Access, 2>& readers) const;
    bool ordered(const Access& before, const Access& now) const;
    bool conflicts(const Access& before, const Now& now) const;
    bool race(const Now& now, const Access& before, const char* verb);
    unsigned site_of(const void* code);
    std::string cite(const Access& access) const;
    std::string place(const Region& region, const char* address, std::size_t bytes) const;

    const EmulatedKernel* kernel_ = nullptr;
    int device_ = no_device;
    void** arguments_ = nullptr;
    std::string problem_;
    std::uint64_t launch_ = 0;
    std::uint32_t interval_ = 0, block_begin_ = 0;
    struct BlockStart {
        std::uint32_t interval;
        unsigned number;
    };
    std::vector<BlockStart> blocks_;
    // What a lane knows of the clocks of its warp's lanes, within the interval.
    std::vector<std::array<std::uint8_t, warp_size>> clocks_;
    bool clocks_used_ = false;
    std::array<Region, 8> regions_;  // the last ones
    std::size_t next_region_ = 0;
    std::unordered_map<std::uintptr_t, std::unique_ptr<Page>> pages_;
    struct CachedPage {
        std::uintptr_t number = 0;
        Page* page = nullptr;
    };
    std::array<CachedPage, cached_pages> cache_;
    std::unordered_map<std::uintptr_t, Atomics> atomics_;  // by address / 4
    std::vector<const void*> sites_;
    std::unordered_map<const void*, unsigned> site_numbers_;
};

}  // namespace bitale::cuda
