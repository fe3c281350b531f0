#include "runtime/cuda/availability.h"

#include <fmt/format.h>

#include "runtime/cuda/libraries.h"

namespace bitale::cuda {

std::string why_unavailable() {
    const Loaded<RuntimeTable>& library = runtime_library();
    if (!library.present)
        return "no CUDA runtime (" + library.problem +
               "); install CUDA 12.8 or newer, or name its folder by cuda_home in BITALE_FLAGS";
    const RuntimeTable& runtime = library.table;
    int count = 0;
    const Status status = runtime.cudaGetDeviceCount(&count);
    const std::string found = fmt::format("the CUDA runtime {} ", library.path);
    switch (status) {
        case success: break;
        case error_insufficient_driver: {
            int driver = 0, version = 0;
            runtime.cudaDriverGetVersion(&driver);
            runtime.cudaRuntimeGetVersion(&version);
            if (driver == 0)
                return found + "is there, but no NVIDIA driver (libcuda.so.1); install the driver";
            return found +
                   fmt::format("needs a driver for CUDA {}.{}, the installed one is for {}.{}; update it",
                               version / 1000, version % 1000 / 10, driver / 1000, driver % 1000 / 10);
        }
        case error_stub_library:
            return found +
                   "finds the stub of libcuda.so.1 that is meant for linking; put the driver's own first";
        case error_no_device: return found + "and a driver are there, but no GPU";
        default:
            return found + fmt::format("fails: {} ({})", runtime.cudaGetErrorString(status),
                                       runtime.cudaGetErrorName(status));
    }
    if (count == 0) return found + "and a driver are there, but no GPU";
    const Loaded<NvrtcTable>& compiler = nvrtc_library();
    if (!compiler.present)
        return "a GPU is there, but no NVRTC to compile kernels (" + compiler.problem + ")";
    return "";
}

}  // namespace bitale::cuda
