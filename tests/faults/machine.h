// The emulator plays a machine: what it allocates for itself stands for what a GPU has, and never fails.
#pragma once

namespace bitale::test {

void emulator_never_fails();

}  // namespace bitale::test
