// Probes libraries, devices and the cache without starting anything.
#include "runtime/info.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "graph/base/options.h"
#include "runtime/cache/disk_cache.h"
#include "runtime/cpu/affinity.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/eigh.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cuda/libraries.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/exec/device.h"

namespace bitale {

namespace {

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
    s += fmt::format("\nlibraries\n  oneDNN     {}{}\n",
                     gemm.present ? "" : "absent, products are computed without it: ", gemm.name);
    const Lapack& lapack = lapack_library();
    s += fmt::format("  LAPACK     {}{}\n",
                     lapack.present ? "" : "absent, eigh is computed without it: ", lapack.name);
    s += "\nCUDA (opened when a function needs it)\n";
    for (const cuda::LibraryStatus& library : cuda::library_list())
        s += fmt::format("  {:<10} {}\n", library.name, library.text);
    if (const std::vector<int> list = cuda::nvrtc_architectures(); !list.empty())
        s += fmt::format("  NVRTC compiles for sm_{}\n", fmt::join(list, " "));
    s += "\ncompiled kernels\n  " + cache_text() + "\n";
    s += "\nBITALE_FLAGS\n" + flags_help();
    return s;
}

std::string info_json() {
    using nlohmann::ordered_json;
    ordered_json devices = ordered_json::array(), libraries = ordered_json::array();
    for (const DeviceStatus& d : device_list())
        devices.push_back({{"name", d.name}, {"available", d.available}, {"text", d.text}});
    for (const cuda::LibraryStatus& library : cuda::library_list())
        libraries.push_back({{"name", library.name}, {"text", library.text}});
    const CpuFeatures& cpu = cpu_features();
    const CompilerSearch compiler = find_compiler();
    ordered_json host_compiler = {{"found", compiler.found.has_value()}};
    if (compiler.found) {
        host_compiler["command"] = compiler.found->command;
        host_compiler["flags"] = compile_flags();
    } else {
        host_compiler["problem"] = compiler.problem;
    }
    ordered_json cache = {{"on", options().cache}};
    if (options().cache) {
        const DiskCache disk(cache_directory(), options().cache_bytes);
        cache["usable"] = disk.usable();
        if (disk.usable()) {
            cache["folder"] = disk.directory();
            cache["bytes"] = disk.bytes();
            cache["most_bytes"] = options().cache_bytes;
        } else {
            cache["problem"] = disk.problem();
        }
    }
    const GemmLibrary& gemm = gemm_library();
    const ordered_json all = {
        {"version", BITALE_VERSION},
        {"devices", devices},
        {"default_device", options().device},
        {"processor",
         {{"model", cpu.model},
          {"usable_cores", usable_cores().size()},
          {"architecture", cpu.architecture},
          {"features", cpu.names}}},
        {"host_compiler", host_compiler},
        {"onednn", {{"present", gemm.present}, {"text", gemm.name}}},
        {"cuda", {{"libraries", libraries}, {"architectures", cuda::nvrtc_architectures()}}},
        {"cache", cache}};
    // Names of files and processors are bytes, not always UTF-8.
    return all.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string version() { return BITALE_VERSION; }

std::string clear_cache() {
    DiskCache cache(cache_directory(), options().cache_bytes);
    if (!cache.usable()) return "nothing to clear: " + cache.problem() + "\n";
    const int removed = cache.clear();
    return fmt::format("removed {} files from {}\n", removed, cache.directory());
}

}  // namespace bitale
