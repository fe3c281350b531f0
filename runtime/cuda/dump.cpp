#include "runtime/cuda/dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cuda/cubins.h"
#include "runtime/cuda/process.h"

namespace bitale::cuda {

namespace {

void write(const std::string& path, const std::string& text) {
    std::ofstream file(path, std::ios::binary);
    file << text;
    file.close();
    if (!file) warn("BITALE_DUMP: \"" + path + "\" cannot be written");
}

// A tool of the toolkit, or its bare name, which is then looked for on PATH.
std::string tool(const std::string& name) {
    const char* home = std::getenv("CUDA_HOME");
    std::istringstream folders(options().cuda_home + ":" + (home ? home : ""));
    for (std::string folder; std::getline(folders, folder, ':');)
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

void dump_cuda(const Program& program, const std::string& architecture, const std::string& folder) {
    const std::vector<CudaUnit> units = cuda_units(program);
    const std::string target = machine_target(architecture);
    const bool machine_code = target.starts_with("sm_");
    const CompiledUnits compiled = find_or_compile(units, target, program.name);
    const std::vector<CompiledModule> ptx =
        machine_code ? compile_units(units, "compute_" + target.substr(3), program.name) : compiled.modules;
    std::string resources = "For " + target + "\n";
    bool without_tool = false;
    for (std::size_t u = 0; u < units.size(); ++u) {
        const std::string base = fmt::format("{}/kernels_{}", folder, u);
        write(base + ".cu", units[u].text);
        write(base + ".ptx", ptx[u].image);
        for (const KernelResources& r : compiled.modules[u].resources)
            resources += fmt::format("{}: {}\n", r.entry, text_of(r));
        if (!machine_code) continue;
        write(base + ".cubin", compiled.modules[u].image);
        if (const std::optional<std::string> sass = disassembled(base + ".cubin"))
            write(base + ".sass", *sass);
        else
            without_tool = true;
    }
    write(folder + "/resources.txt", resources);
    if (without_tool)
        write(folder + "/sass.txt",
              "No SASS: neither nvdisasm nor cuobjdump, which CUDA's full toolkit has, is on PATH or in "
              "$CUDA_HOME/bin.\n");
    if (!machine_code)
        write(folder + "/sass.txt",
              "No SASS: NVRTC does not know " + architecture + ", the driver compiles.\n");
}

}  // namespace bitale::cuda
