// What an emulated kernel sees of its launch. The same layout is spelled in the text that precedes emulated
// kernels (shim.cpp): a change here is one there, and a new version in compile.cpp's key.
#pragma once

#include <cstddef>

#include "runtime/cuda/types.h"

namespace bitale::cuda {

enum class AccessKind : int { read, write, atomic };

struct EmulatorState {
    Extent thread, block, block_size, grid_size;
    unsigned lane = 0;
    void (*barrier)(int line) = nullptr;  // __syncthreads
    // Every lane of `mask` hands in a word and gets that of lane `from`.
    unsigned long long (*exchange)(unsigned mask, unsigned long long word, unsigned from, int line) = nullptr;
    // One bit per lane of `mask`.
    unsigned (*ballot)(unsigned mask, int predicate, int line) = nullptr;
    void (*meet)(unsigned mask, int line) = nullptr;  // __syncwarp
    // Before every access of a kernel that was compiled to be checked; `code` is where it stands.
    void (*access)(const void* address, std::size_t bytes, AccessKind kind, const void* code) = nullptr;
    void (*set_conditional)(unsigned long long handle, unsigned value) = nullptr;  // of a graph's loop
};

}  // namespace bitale::cuda
