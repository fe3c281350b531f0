#include "gpu/clocks.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "runtime/cuda/availability.h"
#include "runtime/cuda/device_name.h"
#include "runtime/cuda/libraries.h"
#include "runtime/outside.h"

using namespace bitale;
using namespace bitale::cuda;

namespace bench {

namespace {

// Of nvml.h: nvmlClockType_t, nvmlTemperatureSensors_t, nvmlClocksEventReason*.
constexpr int sm_clock = 1, memory_clock = 2, gpu_sensor = 0;
constexpr std::pair<unsigned long long, const char*> reason_names[] = {{0x1, "idle"},
                                                                       {0x2, "applications' clocks"},
                                                                       {0x4, "power cap"},
                                                                       {0x8, "hardware slowdown"},
                                                                       {0x10, "sync boost"},
                                                                       {0x20, "thermal, by software"},
                                                                       {0x40, "thermal, by hardware"},
                                                                       {0x80, "power brake"},
                                                                       {0x100, "display's clocks"}};

// CUDA numbers GPUs in an order of its own, and may hide some: the place on the bus is the same for both.
std::string place_on_bus(const RuntimeTable& runtime, int index) {
    constexpr int bus = 33, device = 34, domain = 50;  // of cudaDeviceAttr
    int numbers[3] = {};
    for (const auto& [k, attribute] : {std::pair{0, domain}, {1, bus}, {2, device}})
        if (runtime.cudaDeviceGetAttribute(&numbers[k], static_cast<DeviceAttribute>(attribute), index) !=
            success)
            return "";
    return fmt::format("{:08x}:{:02x}:{:02x}.0", numbers[0], numbers[1], numbers[2]);
}

template <class F>
void find(void* library, F& function, const char* name) {
    function = reinterpret_cast<F>(dlsym(library, name));
}

}  // namespace

Clocks::Clocks(const RuntimeTable* runtime, int index) {
    const std::string place = runtime ? place_on_bus(*runtime, index) : "";
    // It stays open, as those of CUDA do.
    void* const nvml =
        place.empty() ? nullptr : outside::load_library("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!nvml) return;
    int (*start)() = nullptr;
    int (*by_place)(const char*, void**) = nullptr;
    find(nvml, start, "nvmlInit_v2");
    find(nvml, by_place, "nvmlDeviceGetHandleByPciBusId_v2");
    find(nvml, clock_, "nvmlDeviceGetClockInfo");
    find(nvml, power_, "nvmlDeviceGetPowerUsage");
    find(nvml, temperature_, "nvmlDeviceGetTemperature");
    find(nvml, reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons");
    if (!reasons_) find(nvml, reasons_, "nvmlDeviceGetCurrentClocksEventReasons");
    if (!start || !by_place || start() != 0 || by_place(place.c_str(), &device_) != 0) device_ = nullptr;
}

bool Clocks::read_number(int (*ask)(void*, int, unsigned*), int kind, unsigned& value) const {
    return ask && ask(device_, kind, &value) == 0;
}

void Clocks::note() {
    constexpr std::chrono::milliseconds apart{20};
    const auto now = std::chrono::steady_clock::now();
    if (!device_ || now - last_ < apart) return;
    last_ = now;
    unsigned value = 0;
    if (read_number(clock_, sm_clock, value)) megahertz_.push_back(value);
    if (read_number(clock_, memory_clock, value)) memory_megahertz_.push_back(value);
    if (read_number(temperature_, gpu_sensor, value)) degrees_.push_back(value);
    if (power_ && power_(device_, &value) == 0) watts_.push_back(value / 1e3);
    if (unsigned long long bits = 0; reasons_ && reasons_(device_, &bits) == 0)
        for (const auto& [bit, name] : reason_names)
            if (bits & bit) held_back_by_.insert(name);
}

Json Clocks::take() {
    Json r;
    const auto put = [&](const char* name, auto& list) {
        if (auto some = std::exchange(list, {}); !some.empty()) r[name] = some;
    };
    put("sm_MHz", megahertz_);
    put("memory_MHz", memory_megahertz_);
    put("power_W", watts_);
    put("temperature_C", degrees_);
    if (!r.is_null()) r["held_back_by"] = std::exchange(held_back_by_, {});
    last_ = {};
    return r;
}

Clocks clocks_of(const std::string& device) {
    const std::optional<DeviceName> name = parse_device_name(device);
    const bool gpu =
        name && !name->emulated && name->architecture.empty() && why_unavailable(name->index).empty();
    return {gpu ? &runtime_library().table : nullptr, gpu ? name->index : 0};
}

}  // namespace bench
