#include "runtime/cuda/libraries.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <string>
#include <utility>

#include "graph/base/turns.h"
#include "runtime/cuda/search.h"

namespace bitale::cuda {

namespace {

// The symbol that has the signature we declare, in this version of its library.
const char* symbol_of(const char* name, const SharedLibrary& library) {
    int version = 0;
    if (const auto of_runtime = reinterpret_cast<decltype(RuntimeTable::cudaRuntimeGetVersion)>(
            library.symbol("cudaRuntimeGetVersion")))
        of_runtime(&version);
    if (version / 1000 == 12)
        for (const Renamed& renamed : renamed_since_12)
            if (std::strcmp(renamed.name, name) == 0) return renamed.in_12;
    return name;
}

// Fills one entry; false, with the reason, where the library lacks it.
template <class F, class Table>
bool fill(F& function, const char* name, const SharedLibrary& library, Loaded<Table>& loaded) {
    const char* const symbol = symbol_of(name, library);
    function = reinterpret_cast<F>(library.symbol(symbol));
    if (!function && loaded.problem.empty())
        loaded.problem =
            fmt::format("{} has no function {}: another version of CUDA?", library.path(), symbol);
    return function != nullptr;
}

template <class Table, class Fill>
Loaded<Table> filled(const SharedLibrary& library, Fill&& fill_all) {
    Loaded<Table> loaded;
    loaded.path = library.path();
    loaded.problem = library.problem();
    loaded.passed_over = library.passed_over();
    loaded.present = library.found() && fill_all(loaded, library);
    return loaded;
}

using Serves = SharedLibrary::Serves;
using Verdict = SharedLibrary::Verdict;

template <class Table, class Fill>
Verdict has_functions(const SharedLibrary& library, Fill&& fill_all) {
    Loaded<Table> trial;
    trial.path = library.path();
    return fill_all(trial, library) ? Verdict{} : Verdict{Serves::no, trial.problem};
}

std::string thousands(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

template <class Table, class Version>
LibraryStatus status(const char* name, const Loaded<Table>& library, Version&& version) {
    if (!library.present) return {name, "absent: " + library.problem};
    return {name, fmt::format("{} ({}){}", std::forward<Version>(version)(library.table), library.path,
                              passed_over_text(library.passed_over))};
}

std::string driver_text(const DriverTable& driver) {
    if (const int problem = driver.cuInit(0); problem != 0) {
        const char* words = nullptr;
        driver.cuGetErrorString(problem, &words);
        return fmt::format("does not start: {} (error {})", words ? words : "unknown error", problem);
    }
    int version = 0, devices = 0;
    driver.cuDriverGetVersion(&version);
    driver.cuDeviceGetCount(&devices);
    return fmt::format("CUDA {}, {} GPU{}", thousands(version), devices, devices == 1 ? "" : "s");
}

// A function for each library that fills the table.
#define BITALE_FILL(result, name, arguments) \
    complete = fill(loaded.table.name, #name, library, loaded) && complete;
#define BITALE_FILLER(FILLER, TABLE, ROWS)                             \
    bool FILLER(Loaded<TABLE>& loaded, const SharedLibrary& library) { \
        bool complete = true;                                          \
        ROWS(BITALE_FILL) return complete;                             \
    }
BITALE_FILLER(fill_runtime, RuntimeTable, BITALE_CUDA_RUNTIME)
BITALE_FILLER(fill_graphs, GraphTable, BITALE_CUDA_GRAPHS)
BITALE_FILLER(fill_loops, LoopTable, BITALE_CUDA_LOOPS)
BITALE_FILLER(fill_nvrtc, NvrtcTable, BITALE_NVRTC)
BITALE_FILLER(fill_cublaslt, CublasLtTable, BITALE_CUBLASLT)
BITALE_FILLER(fill_cudnn, CudnnTable, BITALE_CUDNN)
BITALE_FILLER(fill_cusolver, CusolverTable, BITALE_CUSOLVER)
BITALE_FILLER(fill_nccl, NcclTable, BITALE_NCCL)
BITALE_FILLER(fill_driver, DriverTable, BITALE_CUDA_DRIVER)
#undef BITALE_FILLER
#undef BITALE_FILL

// A driver takes runtimes of its own major version and of older ones.
Verdict judge_runtime(const SharedLibrary& library) {
    Loaded<RuntimeTable> trial;
    trial.path = library.path();
    if (!fill_runtime(trial, library)) return {Serves::no, trial.problem};
    int count = 0, driver = 0, version = 0;
    const Status status = trial.table.cudaGetDeviceCount(&count);
    if (status != error_insufficient_driver && status != error_needs_newer_driver &&
        status != error_driver_mismatch && status != error_compatibility)
        return {};
    trial.table.cudaDriverGetVersion(&driver);
    trial.table.cudaRuntimeGetVersion(&version);
    if (driver == 0) return {Serves::comes_close};  // there is none, for any of them
    return {Serves::comes_close,
            fmt::format("{} is of CUDA {}, the driver for {}: {}", library.path(), thousands(version),
                        thousands(driver), trial.table.cudaGetErrorString(status))};
}

// Whoever looks for it asks it for GPUs.
struct RuntimeFile {
    SharedLibrary library{LibraryName{"CUDA runtime", "libcudart", {13, 12}, "cuda_runtime"}, judge_runtime};
    int after_forks = forks_so_far();
};
const RuntimeFile& runtime_found() {
    static const RuntimeFile& found = *new RuntimeFile;
    return found;
}
const SharedLibrary& runtime_file() { return runtime_found().library; }

// CUDA's major version that other libraries must have too; 0: there is no GPU, and any serves.
int chosen_major() {
    static const int major = [] {
        const Loaded<RuntimeTable>& runtime = runtime_library();
        int count = 0, version = 0;
        if (!runtime.present || runtime.table.cudaGetDeviceCount(&count) != success || count == 0) return 0;
        return runtime.table.cudaRuntimeGetVersion(&version) == success ? version / 1000 : 0;
    }();
    return major;
}

// One of those that carry CUDA's major version in the names of their files.
LibraryName of_chosen_major(LibraryName name) {
    if (const int major = chosen_major()) name.majors = {major};
    return name;
}

template <class Table>
Loaded<Table> load(const LibraryName& name, bool (*fill_all)(Loaded<Table>&, const SharedLibrary&),
                   const SharedLibrary::Judge& judge = nullptr) {
    const auto has_all = [fill_all](const SharedLibrary& library) {
        return has_functions<Table>(library, fill_all);
    };
    return filled<Table>(SharedLibrary(name, judge ? judge : SharedLibrary::Judge(has_all)), fill_all);
}

template <class Table>
Loaded<Table> load_of_major(const LibraryName& name, bool (*fill_all)(Loaded<Table>&, const SharedLibrary&)) {
    Loaded<Table> loaded = load(of_chosen_major(name), fill_all);
    if (!loaded.present && chosen_major() != 0)
        loaded.problem += fmt::format("; wanted is that of CUDA {}, as the CUDA runtime {} is",
                                      chosen_major(), runtime_library().path);
    return loaded;
}

// Its file has a version of its own.
Verdict judge_cudnn(const SharedLibrary& library) {
    const Verdict functions = has_functions<CudnnTable>(library, fill_cudnn);
    const auto version_of_cuda = reinterpret_cast<std::size_t (*)()>(library.symbol("cudnnGetCudartVersion"));
    if (functions.serves != Serves::yes || !version_of_cuda || chosen_major() == 0) return functions;
    const auto version = static_cast<int>(version_of_cuda());
    if (version / 1000 == chosen_major()) return {};
    return {Serves::no, fmt::format("{} is for CUDA {}, the CUDA runtime {} is of CUDA {}", library.path(),
                                    thousands(version), runtime_library().path, chosen_major())};
}

}  // namespace

bool began_in_parent() { return runtime_found().after_forks != forks_so_far(); }

std::string passed_over_text(const std::vector<std::string>& list) {
    return list.empty() ? "" : fmt::format("; passed over: {}", fmt::join(list, "; "));
}

const LibraryName& nvrtc_name() {
    static const LibraryName& name =
        *new LibraryName(of_chosen_major({"NVRTC", "libnvrtc", {13, 12}, "cuda_nvrtc"}));
    return name;
}

// One accessor per library; the table is filled by the first caller.
#define BITALE_LIBRARY(FUNCTION, TABLE, ...)                     \
    const Loaded<TABLE>& FUNCTION() {                            \
        static const auto& it = *new Loaded<TABLE>(__VA_ARGS__); \
        return it;                                               \
    }
BITALE_LIBRARY(runtime_library, RuntimeTable, filled<RuntimeTable>(runtime_file(), fill_runtime))
BITALE_LIBRARY(graph_library, GraphTable, filled<GraphTable>(runtime_file(), fill_graphs))
BITALE_LIBRARY(loop_library, LoopTable, filled<LoopTable>(runtime_file(), fill_loops))
BITALE_LIBRARY(nvrtc_library, NvrtcTable, load_of_major(nvrtc_name(), fill_nvrtc))
BITALE_LIBRARY(cublaslt_library, CublasLtTable,
               load_of_major({"cuBLASLt", "libcublasLt", {13, 12}, "cublas"}, fill_cublaslt))
BITALE_LIBRARY(cudnn_library, CudnnTable, load({"cuDNN", "libcudnn", {9}, "cudnn"}, fill_cudnn, judge_cudnn))
BITALE_LIBRARY(cusolver_library, CusolverTable,
               load({"cuSOLVER", "libcusolver", {12, 11}, "cusolver"}, fill_cusolver))
BITALE_LIBRARY(nccl_library, NcclTable, load({"NCCL", "libnccl", {2}, "nccl"}, fill_nccl))
BITALE_LIBRARY(driver_library, DriverTable,
               load({"NVIDIA driver", "libcuda", {1}, "cuda_driver"}, fill_driver))
#undef BITALE_LIBRARY

std::vector<LibraryStatus> library_list() {
    const auto reported = [](int status, int version) {
        return status == 0 ? fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100)
                           : "of unknown version";
    };
    return {
        status("driver", driver_library(), driver_text),
        status("cudart", runtime_library(),
               [](const RuntimeTable& t) {
                   int version = 0;
                   const bool known = t.cudaRuntimeGetVersion(&version) == success;
                   const char* graphs = !graph_library().present ? ", without graphs"
                                        : loop_library().present ? ""
                                                                 : ", without loops in graphs";
                   return (known ? thousands(version) : "of unknown version") + graphs;
               }),
        status("NVRTC", nvrtc_library(),
               [](const NvrtcTable& t) {
                   int major = 0, minor = 0;
                   t.nvrtcVersion(&major, &minor);
                   return fmt::format("{}.{}", major, minor);
               }),
        status("cuBLASLt", cublaslt_library(),
               [](const CublasLtTable& t) {
                   const std::size_t version = t.cublasLtGetVersion();
                   return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
               }),
        status("cuDNN", cudnn_library(),
               [](const CudnnTable& t) {
                   const std::size_t version = t.cudnnGetVersion();
                   return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
               }),
        status("cuSOLVER", cusolver_library(),
               [&](const CusolverTable& t) {
                   int version = 0;
                   const int problem = t.cusolverGetVersion(&version);
                   return reported(problem, version);
               }),
        status("NCCL", nccl_library(),
               [](const NcclTable& t) {
                   int version = 0;
                   const int problem = t.ncclGetVersion(&version);
                   return problem == 0
                              ? fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100)
                              : "of unknown version";
               }),
    };
}

}  // namespace bitale::cuda
