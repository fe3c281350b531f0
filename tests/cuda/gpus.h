// The GPUs that tests of this folder use, what they skip without them, and options and tolerances for them.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "bitale/bitale.h"
#include "graph/base/options.h"
#include "runtime/cuda/emulator/blocks.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/exec/device.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"
#include "tests/support/numerics.h"
#include "tests/support/tested_device.h"

namespace bitale::test {

// The emulator, and a GPU if there is one.
inline std::vector<std::string> gpus() {
    std::vector<std::string> names{"emulator"};
    for (const DeviceStatus& d : device_list())
        if (d.name == "cuda" && d.available) names.push_back(d.name);
    return names;
}

// A GPU where BITALE_TEST_DEVICE names one.
inline bool on_emulator() { return std::strcmp(tested_gpu(), "emulator") == 0; }
inline bool tested_gpu_skipped() { return on_emulator() && emulator_skipped(); }
// Of what reaches into the emulator of this process.
inline bool left_out() {
    if (!on_emulator()) WARN("left out: it reaches into the emulator, and the device is " << tested_gpu());
    return !on_emulator() || emulator_skipped();
}

// CTest shows a test whose output has this as skipped.
inline bool nvrtc_skipped() {
    const std::string reason = std::string_view(BITALE_SANITIZE).empty()
                                   ? cuda::nvrtc_problem()
                                   : "NVRTC is not run under sanitizers";
    if (reason.empty()) return false;
    std::printf("SKIPPED: %s\n", reason.c_str());
    WARN("SKIPPED: " << reason);
    return true;
}

// Sums of products by a library are added in an order of its own; everything else is the same to the bit.
inline constexpr Tolerance by_library{.absolute = 1e-6, .relative = 1e-3, .of_largest = 1e-4};

inline Options with_cache(const std::string& folder) {
    Options changed = options();
    changed.cache = true;
    changed.cache_directory = folder;
    return changed;
}

inline const cuda::RuntimeTable& runtime() { return cuda::emulated_runtime(); }

inline constexpr cuda::ThreadOrder thread_orders[] = {
    cuda::ThreadOrder::ascending, cuda::ThreadOrder::descending, cuda::ThreadOrder::random};

}  // namespace bitale::test
