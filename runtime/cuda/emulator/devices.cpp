#include "runtime/cuda/emulator/devices.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "graph/base/options.h"
#include "runtime/cuda/availability.h"

namespace bitale::cuda {

namespace {

std::atomic<pid_t> first_user{0};

}  // namespace

bool begin_emulator() {
    const pid_t here = getpid();
    pid_t user = 0;
    return first_user.compare_exchange_strong(user, here) || user == here;
}

bool emulator_began_in_parent() {
    const pid_t user = first_user.load();
    return user != 0 && user != getpid();
}

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
