// Counts what the warps of a launch ask of memory (emulator=counted).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "bitale/counts.h"
#include "runtime/cuda/emulator/memory.h"
#include "runtime/cuda/emulator/module.h"
#include "runtime/cuda/emulator/state.h"

namespace bitale::cuda {

// The accesses of one instruction, by the address behind its call.
struct CountedPlace {
    const void* code = nullptr;
    std::size_t bytes = 0;  // of one thread
    AccessCounts counts;    // without `where`
};

// The launches of a kernel with one grid and one size of blocks.
struct CountedLaunches {
    Extent grid, block;
    LaunchCounts counts;  // without `accesses`
    std::vector<CountedPlace> places;
    std::unordered_map<std::uintptr_t, unsigned> numbers;  // of the places, by code and kind
};
// Of one kernel. Read and written within the scheduler's mutex.
struct CountedKernel {
    std::vector<CountedLaunches> launches;
};

// Threads of a block run one after another, from one barrier or operation of the warp to the next. In that
// stretch the n-th access of each lane at a place is one request; when all lanes of a warp have stopped, its
// requests are complete.
class Counter {
  public:
    void begin_launch(const EmulatedKernel& kernel, const Extent& grid, const Extent& block);
    void begin_block();
    void end_block();
    void stops(unsigned thread);    // it waits, or has ended
    void goes_on(unsigned thread);  // it will run again
    void barrier() { ++launches_->counts.barriers; }
    void access(const void* address, std::size_t bytes, AccessKind kind, const void* code, unsigned thread);

  private:
    static constexpr unsigned warp_size = 32;
    using Addresses = std::array<std::uintptr_t, warp_size>;  // of a request; 0: the lane takes no part

    struct PlaceLog {
        std::array<std::uint32_t, warp_size> turns{};  // of each lane
        std::vector<Addresses> requests;
    };
    struct WarpLog {
        std::vector<PlaceLog> places;
        std::vector<unsigned> touched;
    };
    struct Warp {
        unsigned lanes = 0, stopped = 0;
        std::unique_ptr<WarpLog> log;  // null: nothing since its last stop
    };
    struct ThreadState {
        bool works = false, waits = false;  // the next load is waited for by itself
        std::uint32_t round = 0;            // of loads in flight together, counted through the launch
        std::int64_t rounds = 0;            // of this block
        std::vector<std::uint32_t> seen;    // of each place: the last round with a load there
        std::vector<std::uint32_t> begun;   // of each place: rounds of this block that begin there
    };
    enum class Region : std::uint8_t { other, global, shared };
    struct Known {
        const char* begin = nullptr;
        std::size_t bytes = 0;
        Region region = Region::other;
    };

    Region region_of(const char* address);
    unsigned place_of(const void* code, Region region, bool store, std::size_t bytes);
    void load(ThreadState& thread, unsigned place);
    void complete(Warp& warp);
    void count(CountedPlace& place, const Addresses& request);

    const EmulatedKernel* kernel_ = nullptr;
    CountedLaunches* launches_ = nullptr;
    std::vector<Warp> warps_;
    std::vector<ThreadState> threads_;
    std::vector<std::unique_ptr<WarpLog>> free_logs_;
    std::array<Known, 8> known_;
    std::size_t next_known_ = 0;
    struct CachedPlace {
        std::uintptr_t key = 0;
        unsigned number = 0;
    };
    std::array<CachedPlace, 256> cache_;
};

}  // namespace bitale::cuda
