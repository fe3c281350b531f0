// What an emulated kernel sees of its launch. The same layout is spelled in the text that precedes emulated
// kernels (shim.cpp): a change here is one there, and a new version.
#pragma once

#include "runtime/cuda/types.h"

namespace bitale::cuda {

struct EmulatorState {
    Extent thread, block, block_size, grid_size;
    unsigned lane = 0;
    void (*barrier)(int line) = nullptr;  // __syncthreads
    // Every lane of `mask` hands in a word and gets that of lane `from`.
    unsigned long long (*exchange)(unsigned mask, unsigned long long word, unsigned from, int line) = nullptr;
    // One bit per lane of `mask`.
    unsigned (*ballot)(unsigned mask, int predicate, int line) = nullptr;
};

}  // namespace bitale::cuda
