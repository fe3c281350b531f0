#include "runtime/cuda/emulator/devices.h"

#include <fmt/format.h>

#include "graph/base/options.h"
#include "runtime/cuda/availability.h"

namespace bitale::cuda {

int emulated_devices() { return options().emulator_devices; }

std::string why_not_emulated(int index) {
    if (index < emulated_devices()) return "";
    return fmt::format("the emulator shows {}; emulator_devices={} in BITALE_FLAGS shows more",
                       count_of_devices("emulator", emulated_devices()), index + 1);
}

int& chosen_device() {
    thread_local int device = no_device;
    return device;
}

}  // namespace bitale::cuda
