// What the emulator does with the accesses of its kernels.
#pragma once

#include <cstdint>

#include "graph/base/options.h"

namespace bitale::cuda {

// Kernels that are compiled now report each access, functions that are made now keep each buffer in a block
// of its own; a launch ends at the first race, access outside of a block, or read of shared memory that
// nobody wrote. Much slower.
inline bool emulator_checks() { return options().emulator_checks; }

// Kernels that are compiled now report each access, and what the warps of a launch ask for is counted
// (counter.h).
inline bool emulator_counts() { return options().emulator_counts; }

// What kernels are compiled for.
enum class Watch : std::uint8_t { nothing, checks, counts };
inline Watch emulator_watches() {
    return emulator_checks() ? Watch::checks : emulator_counts() ? Watch::counts : Watch::nothing;
}

}  // namespace bitale::cuda
