// The device "cpu": kernels compiled by the host's compiler, run on a pool of pinned threads.
#pragma once

#include <memory>

#include "runtime/exec/device.h"

namespace bitale {

std::unique_ptr<Device> make_cpu_device();

}  // namespace bitale
