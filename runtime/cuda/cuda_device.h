// The device "emulator": the executor for GPUs on the CPU.
#pragma once

#include <memory>

#include "runtime/exec/device.h"

namespace bitale {

std::unique_ptr<Device> make_emulator_device();

}  // namespace bitale
