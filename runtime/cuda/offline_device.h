// The devices "cuda:sm_90" and the like: a GPU that need not be there. Functions are generated, compiled,
// planned and reported as for it; they cannot be called.
#pragma once

#include <memory>
#include <string>

#include "runtime/exec/device.h"

namespace bitale {

// `architecture` as sm_90. Opens NVRTC with the first function.
std::unique_ptr<Device> make_offline_device(const std::string& architecture);

}  // namespace bitale
