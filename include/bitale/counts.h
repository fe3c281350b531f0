// What kernels ask of the memory of a GPU, as the emulator counts it (BITALE_FLAGS=emulator=counted).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bitale/cplusplus.h"

#pragma GCC visibility push(default)

namespace bitale {

// The loads or the stores of one place in a kernel. What the threads of a warp, 32 in a row, ask for by the
// same instruction in the same turn is a request. Sums over all requests of all launches, and the worst one.
struct AccessCounts {
    enum class Memory : std::uint8_t { global, shared };
    std::string where;  // with debug_kernels=on "net.cpp:15", else "line 12, `s += p2[j];`"
    Memory memory = Memory::global;
    bool store = false;
    std::int64_t requests = 0;
    std::int64_t threads = 0;  // that took part
    // Of global memory: the distinct pieces of 32 and of 128 aligned bytes that a request touches.
    std::int64_t sectors = 0, worst_sectors = 0, lines = 0, worst_lines = 0;
    // Of shared memory: how often a bank of 4 bytes, of 32, serves the request; 1 without a conflict. The
    // same word for many threads counts once.
    std::int64_t turns = 0, worst_turns = 0;
    // Of the loads one after another of the thread that waits for most of them (LaunchCounts::chain): those
    // that begin here.
    std::int64_t waits = 0;

    void add(const AccessCounts& other);  // but for `where`
};

// The launches of one function of a kernel, all of one size.
struct LaunchCounts {
    int number = 0;      // of the kernel in report()
    std::string kernel;  // "k_0123456789abcdef"
    std::int64_t launches = 0;
    std::int64_t blocks = 0, threads = 0;  // of a launch, of a block
    std::int64_t waves = 0;                // with what is known of the target's multiprocessors; 0: unknown
    // Sums over all launches: threads that load or store anything, and barriers of all blocks.
    std::int64_t working = 0, barriers = 0;
    // The most times that a thread waits for loads of global memory. What it loads at different places of the
    // code is in flight together; it waits before it loads at the same place once more, and behind a barrier
    // or an operation of the warp. So a turn of a loop is one wait, and a loop that is unrolled n times waits
    // once in n turns. An address that was loaded itself is not noticed: see docs/gpu.md.
    std::int64_t chain = 0;
    std::vector<AccessCounts> accesses;

    AccessCounts sum(AccessCounts::Memory memory, bool store) const;
    // The access with the largest value; null where all are 0.
    const AccessCounts* worst(std::int64_t AccessCounts::*value) const;
};

struct KernelCounts {
    std::vector<LaunchCounts> launches;
    std::string to_string() const;  // a line for each launch, and one for each place
    std::string json() const;       // docs/program.schema.json describes it under $defs/counts
};

}  // namespace bitale

#pragma GCC visibility pop
