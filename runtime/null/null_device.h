// The device "null": the whole pipeline without a compiler. Calls return zeros of the right shapes and record
// what would have been launched.
#pragma once

#include <memory>

#include "runtime/exec/device.h"
#include "runtime/exec/launcher.h"

namespace bitale {

struct Launch {
    enum class Kind : std::uint8_t { kernel, gemm, conv, copy, routine };
    Kind kind = Kind::kernel;
    int kernel = -1, phase = 0;  // of a kernel
    std::int64_t tasks = 0;      // of a kernel
    GemmShape gemm;
    ConvShape conv;
    RoutineShape routine;
    std::int64_t bytes = 0;  // of a copy
};

std::unique_ptr<Device> make_null_device();
// The launches of the device's calls since the last time this was asked.
std::vector<Launch> take_null_launches();

}  // namespace bitale
