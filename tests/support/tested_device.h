// The device that the numerics suite judges.
#pragma once

#include <cstdlib>
#include <cstring>

namespace bitale::test {

// BITALE_TEST_DEVICE, else cpu: `BITALE_TEST_DEVICE=cuda test_numerics` runs the suite on a GPU.
inline const char* tested_device() {
    const char* device = std::getenv("BITALE_TEST_DEVICE");
    return device && *device ? device : "cpu";
}

// The device that tests of GPUs judge: the same, but the emulator where that is the CPU.
inline const char* tested_gpu() {
    return std::strcmp(tested_device(), "cpu") == 0 ? "emulator" : tested_device();
}

}  // namespace bitale::test
