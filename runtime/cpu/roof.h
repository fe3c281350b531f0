// What the processor can do at most, for the report of a profile.
#pragma once

#include <optional>

#include "runtime/exec/device.h"

namespace bitale {

// Of so many threads at once: bytes read and written by copies larger than the caches, and fused
// multiply-adds of float32, each counted as two operations. Measured once, in about a tenth of a second;
// nothing on processors of which no measurement is known.
std::optional<Roof> measured_roof(int threads);

}  // namespace bitale
