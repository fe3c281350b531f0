// Kernels of a program, compiled and loaded into the driver.
#pragma once

#include <vector>

#include "codegen/program.h"
#include "runtime/cuda/context.h"

namespace bitale::cuda {

struct LoadedUnits {
    Images images;
    std::vector<Library> libraries;  // one per unit
};

// Where the driver refuses what was compiled for one of the backend's targets, the next one is tried. Throws
// CompileError, and DeviceError where the driver takes none.
LoadedUnits load_units(Context& context, const Program& program, const std::vector<CudaUnit>& units);

}  // namespace bitale::cuda
