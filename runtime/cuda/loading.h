// Kernels of a program, compiled and loaded into the driver.
#pragma once

#include <mutex>
#include <vector>

#include "codegen/program.h"
#include "graph/base/turns.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/owned.h"

namespace bitale::cuda {

struct LoadedUnits {
    Images images;
    std::vector<OwnedLibrary> libraries;  // one per unit; kernels are there as long as these
};

// Of the device. Held by who is given it, but while a compiler works: that takes long, and needs no GPU.
// Null: nobody else has the GPU.
using Turn = std::unique_lock<TurnLock>;

// What `compile` returns; the turn is back also where it throws.
template <class F>
auto without_turn(Turn* turn, F&& compile) {
    struct Back {
        Turn* turn;
        ~Back() {
            if (turn) turn->lock();
        }
    } const back{turn};
    if (turn) turn->unlock();
    return compile();
}

// Where the driver refuses what was compiled for one of the backend's targets, the next one is tried. Throws
// CompileError, and DeviceError where the driver takes none.
LoadedUnits load_units(Context& context, const Program& program, const std::vector<CudaUnit>& units,
                       Turn* turn = nullptr);

}  // namespace bitale::cuda
