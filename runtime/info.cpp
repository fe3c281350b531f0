// Probes libraries, devices and the cache without starting anything.
#include "runtime/info.h"

#include <fmt/format.h>

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
    s += fmt::format("\nlibraries\n  oneDNN     {}{}\n", gemm.present ? "" : "absent: ", gemm.name);
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

std::string clear_cache() {
    DiskCache cache(cache_directory(), options().cache_bytes);
    if (!cache.usable()) return "nothing to clear: " + cache.problem() + "\n";
    const int removed = cache.clear();
    return fmt::format("removed {} files from {}\n", removed, cache.directory());
}

}  // namespace bitale
