// Probes libraries, devices and the cache without starting anything.
#include "runtime/info.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "graph/base/options.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cpu/affinity.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/gemm.h"
#include "runtime/exec/device.h"

namespace bitale {

namespace {

struct Probe {
    void* handle = nullptr;
    std::string name, problem;
};

// The first of the libraries that opens; what the system says where none does.
Probe open_first(std::initializer_list<const char*> names) {
    Probe r;
    for (const char* name : names) {
        r.handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (r.handle) {
            r.name = name;
            return r;
        }
        const char* problem = dlerror();
        if (r.problem.empty()) r.problem = problem ? problem : name;
    }
    return r;
}

template <class F>
F symbol(const Probe& probe, const char* name) {
    return probe.handle ? reinterpret_cast<F>(dlsym(probe.handle, name)) : nullptr;
}

std::string nvrtc_text() {
    const Probe probe = open_first({"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"});
    if (!probe.handle) return "absent: " + probe.problem;
    int major = 0, minor = 0;
    const auto version = symbol<int (*)(int*, int*)>(probe, "nvrtcVersion");
    if (!version || version(&major, &minor) != 0) return probe.name + ", which does not say its version";
    return fmt::format("{} (version {}.{})", probe.name, major, minor);
}

std::string driver_text() {
    const Probe probe = open_first({"libcuda.so.1"});
    if (!probe.handle) return "absent: " + probe.problem;
    const auto start = symbol<int (*)(unsigned)>(probe, "cuInit");
    const auto version = symbol<int (*)(int*)>(probe, "cuDriverGetVersion");
    const auto count = symbol<int (*)(int*)>(probe, "cuDeviceGetCount");
    int number = 0, devices = 0;
    if (!start || !version || !count) return probe.name + " lacks the driver's functions";
    if (const int status = start(0); status != 0)
        return fmt::format("{} is there, but cuInit gives error {}", probe.name, status);
    version(&number);
    count(&devices);
    return fmt::format("{} (CUDA {}.{}), {} GPU{}", probe.name, number / 1000, number % 1000 / 10, devices,
                       devices == 1 ? "" : "s");
}

std::string cache_text() {
    if (!options().cache) return "off (cache=off in BITALE_FLAGS)";
    const DiskCache cache(cache_directory(), options().cache_bytes);
    if (!cache.usable()) return "unusable: " + cache.problem();
    return fmt::format("{}, {:.1f} of at most {} MiB", cache.directory(),
                       static_cast<double>(cache.bytes()) / (1 << 20), options().cache_bytes >> 20);
}

}  // namespace

std::string info_text() {
    std::string s = fmt::format("bitale {}\n", BITALE_VERSION);
    s += "\ndevices\n";
    for (const DeviceStatus& d : device_list())
        s += fmt::format("  {:<10} {}{}\n", d.name, d.available ? "" : "not available: ", d.text);
    s += fmt::format("  default    {}\n", options().device);

    const CpuFeatures& cpu = cpu_features();
    s += fmt::format("\nprocessor\n  {}, {} usable cores\n  {}: {}\n", cpu.model, usable_cores().size(),
                     cpu.architecture, fmt::join(cpu.names, " "));
    const CompilerSearch compiler = find_compiler();
    s += "\nhost compiler\n";
    if (compiler.found)
        s += fmt::format("  {}\n  flags {}\n", fmt::join(compiler.found->command, " "),
                         fmt::join(compile_flags(), " "));
    else
        s += "  absent: " + compiler.problem + "\n";

    const GemmLibrary& gemm = gemm_library();
    s += fmt::format("\nlibraries\n  oneDNN     {}{}\n", gemm.present ? "" : "absent: ", gemm.name);
    s += "  NVRTC      " + nvrtc_text() + "\n";
    s += "  CUDA       " + driver_text() + "\n";
    s += "\ncompiled kernels\n  " + cache_text() + "\n";
    s += "\nBITALE_FLAGS\n" + flags_help();
    return s;
}

std::string clear_cache() {
    DiskCache cache(cache_directory(), options().cache_bytes);
    if (!cache.usable()) return "nothing to clear: " + cache.problem() + "\n";
    const int removed = cache.clear();
    return fmt::format("removed {} files from {}\n", removed, cache.directory());
}

}  // namespace bitale
