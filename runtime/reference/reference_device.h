// The device "reference": evaluates graphs as they are, with each op's plain loops. No compiler; the oracle
// of tests.
#pragma once

#include <memory>

#include "runtime/exec/device.h"

namespace bitale {

std::unique_ptr<Device> make_reference_device();
// An executable that evaluates build.plain, for a device that cannot compile.
std::unique_ptr<Executable> interpret(Build build);

}  // namespace bitale
