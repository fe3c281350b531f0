// Whether the emulator watches every access of its kernels.
#pragma once

#include "graph/base/options.h"

namespace bitale::cuda {

// Kernels that are compiled now report each access, functions that are made now keep each buffer in a block
// of its own; a launch ends at the first race, access outside of a block, or read of shared memory that
// nobody wrote. Much slower.
inline bool emulator_checks() { return options().emulator_checks; }

}  // namespace bitale::cuda
