#include "runtime/cuda/availability.h"

#include <fmt/format.h>

namespace bitale::cuda {

const char* const forked_words =
    "this process was forked from another that had begun to use GPUs, and CUDA does not work in such a "
    "child. "
    "Use GPUs in the parent only, or fork before it builds a function for one or lists the devices, or start "
    "a "
    "program of its own";

std::string count_of_devices(const std::string& kind, int count) {
    if (count == 1) return "1, " + kind;
    return fmt::format("{}, {}{} {}:{}", count, kind, count == 2 ? " and" : " to", kind, count - 1);
}

int gpu_count() {
    const Loaded<RuntimeTable>& library = runtime_library();
    int count = 0;
    return library.present && library.table.cudaGetDeviceCount(&count) == success ? count : 0;
}

std::string why_unavailable(int index) { return why_unavailable(runtime_library(), index); }

std::string why_unavailable(const Loaded<RuntimeTable>& library, int index) {
    if (!library.present)
        return "no CUDA runtime (" + library.problem +
               "); install CUDA 12.8 or newer, or name its folder by cuda_home in BITALE_FLAGS";
    const RuntimeTable& runtime = library.table;
    int count = 0;
    const Status status = runtime.cudaGetDeviceCount(&count);
    const std::string found = fmt::format("the CUDA runtime {} ", library.path),
                      passed_over = passed_over_text(library.passed_over);
    switch (status) {
        case success:
            if (began_in_parent()) return forked_words;
            break;
        case error_insufficient_driver: {
            int driver = 0, version = 0;
            runtime.cudaDriverGetVersion(&driver);
            runtime.cudaRuntimeGetVersion(&version);
            if (driver == 0)
                return found + "is there, but no NVIDIA driver (libcuda.so.1); install the driver" +
                       passed_over;
            return found +
                   fmt::format("needs a driver for CUDA {}.{}, the installed one is for {}.{}; update it",
                               version / 1000, version % 1000 / 10, driver / 1000, driver % 1000 / 10) +
                   passed_over;
        }
        case error_stub_library:
            return found +
                   "finds the stub of libcuda.so.1 that is meant for linking; put the driver's own first" +
                   passed_over;
        case error_no_device: return found + "and a driver are there, but no GPU" + passed_over;
        default:
            if (began_in_parent()) return forked_words;
            return found +
                   fmt::format("fails: {} ({})", runtime.cudaGetErrorString(status),
                               runtime.cudaGetErrorName(status)) +
                   passed_over;
    }
    if (count == 0) return found + "and a driver are there, but no GPU" + passed_over;
    if (index >= count)
        return fmt::format("there is no GPU {}; {}finds {}", index, found, count_of_devices("cuda", count));
    return "";
}

}  // namespace bitale::cuda
