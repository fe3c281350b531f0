#include "runtime/cuda/libraries.h"

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <utility>

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
Loaded<Table> load(const LibraryName& name, Fill&& fill_all) {
    const SharedLibrary library(name);
    Loaded<Table> loaded;
    loaded.path = library.path();
    loaded.problem = library.problem();
    loaded.present = library.found() && fill_all(loaded, library);
    return loaded;
}

std::string thousands(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

template <class Table, class Version>
LibraryStatus status(const char* name, const Loaded<Table>& library, Version&& version) {
    if (!library.present) return {name, "absent: " + library.problem};
    return {name, fmt::format("{} ({})", std::forward<Version>(version)(library.table), library.path)};
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

}  // namespace

const LibraryName& nvrtc_name() {
    static const LibraryName& name = *new LibraryName{"NVRTC", "libnvrtc", {13, 12}, "cuda_nvrtc"};
    return name;
}

// One accessor per library; the table is filled by the first caller.
#define BITALE_FILL(result, name, arguments) \
    complete = fill(loaded.table.name, #name, library, loaded) && complete;
#define BITALE_LIBRARY(FUNCTION, TABLE, ROWS, ...)                                                          \
    const Loaded<TABLE>& FUNCTION() {                                                                       \
        static const auto& it = *new Loaded<TABLE>(                                                         \
            load<TABLE>(LibraryName{__VA_ARGS__}, [](Loaded<TABLE>& loaded, const SharedLibrary& library) { \
                bool complete = true;                                                                       \
                ROWS(BITALE_FILL) return complete;                                                          \
            }));                                                                                            \
        return it;                                                                                          \
    }

BITALE_LIBRARY(runtime_library, RuntimeTable, BITALE_CUDA_RUNTIME, "CUDA runtime", "libcudart", {13, 12},
               "cuda_runtime")
BITALE_LIBRARY(graph_library, GraphTable, BITALE_CUDA_GRAPHS, "CUDA runtime", "libcudart", {13, 12},
               "cuda_runtime")
BITALE_LIBRARY(loop_library, LoopTable, BITALE_CUDA_LOOPS, "CUDA runtime", "libcudart", {13, 12},
               "cuda_runtime")
BITALE_LIBRARY(nvrtc_library, NvrtcTable, BITALE_NVRTC, nvrtc_name())
BITALE_LIBRARY(cublaslt_library, CublasLtTable, BITALE_CUBLASLT, "cuBLASLt", "libcublasLt", {13, 12},
               "cublas")
BITALE_LIBRARY(cudnn_library, CudnnTable, BITALE_CUDNN, "cuDNN", "libcudnn", {9}, "cudnn")
BITALE_LIBRARY(cusolver_library, CusolverTable, BITALE_CUSOLVER, "cuSOLVER", "libcusolver", {12, 11},
               "cusolver")
BITALE_LIBRARY(nccl_library, NcclTable, BITALE_NCCL, "NCCL", "libnccl", {2}, "nccl")
BITALE_LIBRARY(driver_library, DriverTable, BITALE_CUDA_DRIVER, "NVIDIA driver", "libcuda", {1},
               "cuda_driver")
#undef BITALE_LIBRARY
#undef BITALE_FILL

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
