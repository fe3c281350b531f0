// The devices "reference" and "reference=wide": evaluate graphs as they are, by the typed and by the wide
// oracle (ops/oracle). No compiler.
#pragma once

#include <memory>

#include "runtime/exec/device.h"

namespace bitale {

std::unique_ptr<Device> make_reference_device(bool wide);
// An executable that evaluates build.plain, for a device that cannot compile.
std::unique_ptr<Executable> interpret(Build build);

}  // namespace bitale
