// The device that the numerics suite judges.
#pragma once

#include <cstdlib>

namespace bitale::test {

// BITALE_TEST_DEVICE, else cpu: `BITALE_TEST_DEVICE=cuda test_numerics` runs the suite on a GPU.
inline const char* tested_device() {
    const char* device = std::getenv("BITALE_TEST_DEVICE");
    return device && *device ? device : "cpu";
}

}  // namespace bitale::test
