#include "runtime/cuda/nvrtc.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <compare>
#include <numeric>
#include <sstream>
#include <thread>

#include "bitale/error.h"
#include "graph/base/options.h"
#include "runtime/cuda/libraries.h"
#include "runtime/outside.h"

namespace bitale::cuda {

namespace {

// No contraction, no flushing, exact division and root: the same bits as on a CPU.
constexpr const char* arithmetic[] = {"-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"};

const NvrtcTable& table() {
    const Loaded<NvrtcTable>& library = nvrtc_library();
    if (!library.present)
        throw CompileError("CUDA kernels cannot be compiled without NVRTC: " + library.problem);
    return library.table;
}

void require(int status, const char* what) {
    if (status != 0)
        throw CompileError(fmt::format("{} fails: {}", what, table().nvrtcGetErrorString(status)));
}

std::vector<std::string> option_list(const std::string& architecture) {
    std::vector<std::string> list = {"-arch=" + architecture, "--std=c++17", "-default-device",
                                     "--ptxas-options=-v"};
    list.insert(list.end(), std::begin(arithmetic), std::end(arithmetic));
    if (options().debug_lines || options().debug_kernels) list.emplace_back("-lineinfo");
    return list;
}

struct NvrtcVersion {
    int major = 0, minor = 0;
    auto operator<=>(const NvrtcVersion&) const = default;
};

NvrtcVersion version_of_nvrtc() {
    NvrtcVersion v;
    require(table().nvrtcVersion(&v.major, &v.minor), "nvrtcVersion");
    return v;
}

// From 12.9 on NVRTC asks the driver's cache first, where there is a driver: what comes from there has no
// words of ptxas, so nobody would know its registers. Ours keeps them. Not part of option_list, and so of the
// keys of our cache: it changes no machine code, and keys are made where no NVRTC is open.
constexpr NvrtcVersion asks_driver_first{12, 9};

class NvrtcProgram {
  public:
    NvrtcProgram(const std::string& source, const std::string& name) {
        require(table().nvrtcCreateProgram(&program_, source.c_str(), name.c_str(), 0, nullptr, nullptr),
                "nvrtcCreateProgram");
    }
    ~NvrtcProgram() { table().nvrtcDestroyProgram(&program_); }
    NvrtcProgram(const NvrtcProgram&) = delete;
    NvrtcProgram& operator=(const NvrtcProgram&) = delete;

    int compile(const std::vector<std::string>& options) {
        std::vector<const char*> list;
        list.reserve(options.size());
        for (const std::string& option : options) list.push_back(option.c_str());
        return table().nvrtcCompileProgram(program_, static_cast<int>(list.size()), list.data());
    }
    std::string log() const { return read(table().nvrtcGetProgramLogSize, table().nvrtcGetProgramLog, 1); }
    std::string cubin() const { return read(table().nvrtcGetCUBINSize, table().nvrtcGetCUBIN, 0); }
    std::string ptx() const { return read(table().nvrtcGetPTXSize, table().nvrtcGetPTX, 0); }

  private:
    // `ending` bytes of the text are not part of it.
    template <class Size, class Get>
    std::string read(Size size, Get get, std::size_t ending) const {
        std::size_t bytes = 0;
        require(size(program_, &bytes), "reading NVRTC's result");
        std::string text(bytes, '\0');
        if (bytes > 0) require(get(program_, text.data()), "reading NVRTC's result");
        text.resize(bytes - std::min(bytes, ending));
        return text;
    }

    ProgramPointer program_ = nullptr;
};

// Of "NAME(12): error: ...", the first number; 0 for none.
int fault_line(const std::string& log, const std::string& name) {
    const std::size_t at = log.find(name + "(");
    if (at == std::string::npos) return 0;
    return std::atoi(log.c_str() + at + name.size() + 1);
}

std::string lines_around(const std::string& source, int fault) {
    constexpr int context = 4;
    std::string text;
    std::istringstream lines(source);
    int number = 0;
    for (std::string line; std::getline(lines, line) && number < fault + context;)
        if (++number >= fault - context)
            text += fmt::format("{}{:>6} | {}\n", number == fault ? '>' : ' ', number, line.substr(0, 300));
    return text;
}

// The number before a word like "registers" in a line of ptxas; 0 where the word is missing.
int number_before(const std::string& line, const std::string& word) {
    std::size_t at = line.find(word);
    if (at == std::string::npos) return 0;
    while (at > 0 && line[at - 1] == ' ') --at;
    std::size_t first = at;
    while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
    return first == at ? 0 : std::atoi(line.substr(first, at - first).c_str());
}

std::string quoted(const std::string& line) {
    const std::size_t first = line.find('\''), last = line.find('\'', first + 1);
    return last == std::string::npos ? "" : line.substr(first + 1, last - first - 1);
}

}  // namespace

std::vector<KernelResources> resources_in(const std::string& log) {
    std::vector<KernelResources> list;
    std::istringstream lines(log);
    bool of_entry = false;  // else of a function that was not inlined, whose stack its callers hold
    for (std::string line; std::getline(lines, line);) {
        if (line.find("Compiling entry function") != std::string::npos) {
            list.emplace_back().entry = quoted(line);
            of_entry = true;
        } else if (const std::size_t at = line.find("Function properties for "); at != std::string::npos) {
            of_entry = !list.empty() && line.find(list.back().entry, at) != std::string::npos;
        } else if (list.empty()) {
            continue;
        } else if (line.find("bytes stack frame") != std::string::npos) {
            KernelResources& k = list.back();
            if (of_entry) k.stack_bytes = number_before(line, "bytes stack frame");
            k.spill_stores += number_before(line, "bytes spill stores");
            k.spill_loads += number_before(line, "bytes spill loads");
        } else if (line.find("Used ") != std::string::npos) {
            KernelResources& k = list.back();
            k.registers = number_before(line, "registers");
            k.barriers = number_before(line, "barriers");
            k.shared_bytes = number_before(line, "bytes smem");
        }
    }
    return list;
}

std::string text_of(const KernelResources& resources) {
    return fmt::format("{} registers, {} B of shared memory a block, {} B of stack, {}", resources.registers,
                       resources.shared_bytes, resources.stack_bytes,
                       resources.spills() ? fmt::format("{} B spilled and {} B loaded again",
                                                        resources.spill_stores, resources.spill_loads)
                                          : "no spills");
}

std::string nvrtc_problem() {
    const Loaded<NvrtcTable>& library = nvrtc_library();
    return library.present ? "" : library.problem;
}

std::string nvrtc_version() {
    if (!nvrtc_library().present) return "";
    const NvrtcVersion v = version_of_nvrtc();
    return fmt::format("{}.{}", v.major, v.minor);
}

std::vector<int> nvrtc_architectures() {
    if (!nvrtc_library().present) return {};
    int count = 0;
    require(table().nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
    std::vector<int> list(static_cast<std::size_t>(count));
    require(table().nvrtcGetSupportedArchs(list.data()), "nvrtcGetSupportedArchs");
    std::sort(list.begin(), list.end());
    return list;
}

std::string nvrtc_options(const std::string& architecture) {
    return fmt::format("{}", fmt::join(option_list(architecture), " "));
}

CompiledModule compile_cuda(const std::string& source, const std::string& architecture,
                            const std::string& name) {
    NvrtcProgram program(source, name);
    std::vector<std::string> list = option_list(architecture);
    if (version_of_nvrtc() >= asks_driver_first) list.emplace_back("--no-cache");
    const int status = program.compile(list);
    CompiledModule module;
    module.log = program.log();
    if (status != 0) {
        constexpr std::size_t most = 4000;
        const int fault = fault_line(module.log, name);
        throw CompileError(fmt::format("NVRTC {} refuses {} for {}: {}\n{}{}", nvrtc_version(), name,
                                       architecture, table().nvrtcGetErrorString(status),
                                       fault > 0 ? lines_around(source, fault) : "",
                                       module.log.substr(0, most)));
    }
    module.image = architecture.starts_with("sm_") ? program.cubin() : program.ptx();
    module.resources = resources_in(module.log);
    return module;
}

std::vector<CudaUnit> cuda_units(const Program& program) {
    constexpr std::size_t kernels_per_unit = 16;
    std::vector<int> order;
    for (std::size_t k = 0; k < program.kernels.size(); ++k)
        if (!program.kernels[k].cuda_body.empty()) order.push_back(static_cast<int>(k));
    if (order.empty()) return {};
    const auto body = [&](int k) -> const std::string& {
        return program.kernels[static_cast<std::size_t>(k)].cuda_body;
    };
    // The longest first, each to the unit that is shortest so far.
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return body(a).size() > body(b).size(); });
    std::vector<CudaUnit> units((order.size() + kernels_per_unit - 1) / kernels_per_unit);
    std::vector<std::size_t> length(units.size(), 0);
    for (std::size_t u = 0; u < units.size(); ++u) units[u].number = static_cast<int>(u);
    for (const int k : order) {
        const auto at =
            static_cast<std::size_t>(std::min_element(length.begin(), length.end()) - length.begin());
        units[at].kernels.push_back(k);
        length[at] += body(k).size();
    }
    for (CudaUnit& unit : units) {
        std::sort(unit.kernels.begin(), unit.kernels.end());
        unit.text = program.cuda_prelude + "\n";
        for (const int k : unit.kernels) unit.text += body(k) + "\n";
    }
    return units;
}

std::vector<CompiledModule> compile_units(const std::vector<CudaUnit>& units, const std::string& architecture,
                                          const std::string& name) {
    std::vector<CompiledModule> modules(units.size());
    if (units.empty()) return modules;
    table();  // so that its absence is reported before any thread starts
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        try {
            for (std::size_t u = next++; u < units.size(); u = next++)
                modules[u] =
                    compile_cuda(units[u].text, architecture,
                                 fmt::format("{}{}.cu", name,
                                             units[u].number > 0 ? fmt::format("_{}", units[u].number) : ""));
        } catch (...) {
            next = units.size();
            throw;
        }
    };
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    run_on_threads(std::min(cores, units.size()), work);
    return modules;
}

}  // namespace bitale::cuda
