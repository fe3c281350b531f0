#include "runtime/cuda/dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <vector>

#include "bitale/error.h"
#include "graph/base/atomic_file.h"
#include "graph/base/options.h"
#include "graph/base/text.h"
#include "runtime/cuda/cubins.h"
#include "runtime/cuda/process.h"

namespace bitale::cuda {

namespace {

// A tool of the toolkit, or its bare name, which is then looked for on PATH.
std::string tool(const std::string& name) {
    const char* home = secure_getenv("CUDA_HOME");
    for (const std::string& folder : split(options().cuda_home + ":" + (home ? home : ""), ":"))
        if (std::string path = fmt::format("{}/bin/{}", folder, name);
            !folder.empty() && access(path.c_str(), X_OK) == 0)
            return path;
    return name;
}

std::optional<std::string> disassembled(const std::string& cubin) {
    std::optional<std::string> text = output_of({tool("nvdisasm"), "-c", cubin});
    if (!text) text = output_of({tool("cuobjdump"), "-sass", cubin});
    return text;
}

}  // namespace

std::map<std::string, std::string> dump_cuda(const Program& program, const std::string& architecture,
                                             const std::string& folder) {
    const std::vector<CudaUnit> units = cuda_units(program);
    const auto base = [&](std::size_t unit) { return fmt::format("{}/kernels_{}", folder, unit); };
    for (std::size_t u = 0; u < units.size(); ++u) dump_file(base(u) + ".cu", units[u].text);

    std::map<std::string, std::string> taken;
    try {
        const std::string target = machine_target(architecture);
        const bool machine_code = target.starts_with("sm_");
        const CompiledUnits compiled = find_or_compile(units, target, program.name);
        std::string resources = "For " + target + "\n";
        bool without_tool = false;
        for (std::size_t u = 0; u < units.size(); ++u) {
            for (const KernelResources& r : compiled.modules[u].resources) {
                resources += fmt::format("{}: {}\n", r.entry, text_of(r));
                taken.emplace(r.entry, fmt::format("{}, for {}", text_of(r), target));
            }
            dump_file(base(u) + (machine_code ? ".cubin" : ".ptx"), compiled.modules[u].image);
            if (!machine_code) continue;
            if (const std::optional<std::string> sass = disassembled(base(u) + ".cubin"))
                dump_file(base(u) + ".sass", *sass);
            else
                without_tool = true;
        }
        dump_file(folder + "/resources.txt", resources);
        if (without_tool)
            dump_file(
                folder + "/sass.txt",
                "No SASS: neither nvdisasm nor cuobjdump, which CUDA's full toolkit has, is on PATH or in "
                "$CUDA_HOME/bin.\n");
        if (!machine_code) {
            dump_file(folder + "/sass.txt",
                      "No SASS: NVRTC does not know " + architecture + ", the driver compiles.\n");
            return taken;
        }
        // Of the cache there is machine code only.
        const std::vector<CompiledModule> ptx =
            compile_units(units, "compute_" + target.substr(3), program.name);
        for (std::size_t u = 0; u < units.size(); ++u) dump_file(base(u) + ".ptx", ptx[u].image);
    } catch (const CompileError& e) {
        // A dump is there to look at what is wrong: whoever needs the machine code says so.
        dump_file(folder + "/nvrtc.txt", fmt::format("What is missing here was not made: {}\n", e.what()));
    }
    return taken;
}

}  // namespace bitale::cuda
