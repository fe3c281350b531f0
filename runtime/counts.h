// What the emulator has counted, as part of a report.
#pragma once

#include <string>

#include "bitale/counts.h"
#include "bitale/function.h"

namespace bitale {

KernelCounts counts_of(const Function::State& state);
// In brief three lines for each launch, complete a table of the places that load and store; nothing where
// nothing was counted.
std::string counts_text(const KernelCounts& counts, Detail detail);

}  // namespace bitale
