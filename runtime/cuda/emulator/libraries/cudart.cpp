// An emulated libcudart: the functions that Bitale calls, as NVIDIA's headers of this version declare them.
// The emulator does the work.
#include "runtime/cuda/emulator/libraries/cudart.h"

#include <cstdlib>
#include <cstring>

using namespace bitale::cuda;
using abi::runtime;

namespace {

// The emulated GPU: as an H100 where a kernel's limits are concerned.
constexpr abi::Property properties[] = {
    {288, 288, 8, std::int64_t{1} << 34},  // totalGlobalMem
    {296, 296, 8, 48 << 10},               // sharedMemPerBlock
    {304, 304, 4, 65536},                  // regsPerBlock
    {308, 308, 4, 32},                     // warpSize
    {320, 320, 4, 1024},                   // maxThreadsPerBlock
    {324, 324, 4, 1024},                   // maxThreadsDim
    {328, 328, 4, 1024},
    {332, 332, 4, 64},
    {336, 336, 4, 0x7fffffff},  // maxGridSize
    {340, 340, 4, 65535},
    {344, 344, 4, 65535},
    {360, 360, 4, 9},  // major
    {364, 364, 4, 0},  // minor
    {388, 384, 4, 8},  // multiProcessorCount
};

// That of the driver, which is as new as the runtime unless the variable BITALE_EMULATED_DRIVER says
// otherwise (12080 for CUDA 12.8). Then a runtime of a newer major version is refused.
int driver_version() {
    static const int version = [] {
        const char* text = std::getenv("BITALE_EMULATED_DRIVER");
        return text ? std::atoi(text) : BITALE_EMULATED_CUDA;
    }();
    return version;
}
Status driver_refusal() {
    return driver_version() / 1000 < BITALE_EMULATED_CUDA / 1000 ? error_insufficient_driver : success;
}

Status unless_null(const void* pointer) { return pointer ? success : error_invalid_value; }

}  // namespace

// ---- the device ----

EMULATED int cudaGetDeviceCount(int* count) {
    const Status refusal = driver_refusal();
    return refusal == success ? runtime().cudaGetDeviceCount(count) : refusal;
}
EMULATED int cudaSetDevice(int device) {
    const Status refusal = driver_refusal();
    return refusal == success ? runtime().cudaSetDevice(device) : refusal;
}

#if BITALE_EMULATED_CUDA < 13000
EMULATED int cudaGetDeviceProperties_v2(void* to, int device) {
#else
EMULATED int cudaGetDeviceProperties(void* to, int device) {
#endif
    if (!to) return error_invalid_value;
    DeviceProperties ours;
    const Status status = runtime().cudaGetDeviceProperties(&ours, device);
    if (status != success) return status;
    char* const bytes = static_cast<char*>(to);
    std::memset(bytes, 0, abi::properties_bytes(BITALE_EMULATED_CUDA));
    std::memcpy(bytes, ours.name, sizeof ours.name);
    for (const abi::Property& p : properties)
        std::memcpy(bytes + (BITALE_EMULATED_CUDA < 13000 ? p.in_12 : p.in_13), &p.value, p.bytes);
    return success;
}

EMULATED int cudaDeviceGetAttribute(int* value, int attribute, int device) {
    return runtime().cudaDeviceGetAttribute(value, static_cast<DeviceAttribute>(attribute), device);
}
EMULATED int cudaRuntimeGetVersion(int* version) {
    if (version) *version = BITALE_EMULATED_CUDA;
    return unless_null(version);
}
EMULATED int cudaDriverGetVersion(int* version) {
    if (version) *version = driver_version();
    return unless_null(version);
}
EMULATED const char* cudaGetErrorName(int status) { return runtime().cudaGetErrorName(status); }
EMULATED const char* cudaGetErrorString(int status) { return runtime().cudaGetErrorString(status); }

// ---- memory ----

EMULATED int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
    return runtime().cudaMemGetInfo(free, total);
}
EMULATED int cudaMalloc(void** pointer, std::size_t bytes) { return runtime().cudaMalloc(pointer, bytes); }
EMULATED int cudaFree(void* pointer) { return runtime().cudaFree(pointer); }
EMULATED int cudaMallocHost(void** pointer, std::size_t bytes) {
    return runtime().cudaMallocHost(pointer, bytes);
}
EMULATED int cudaHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
    return runtime().cudaHostAlloc(pointer, bytes, flags);
}
EMULATED int cudaHostGetDevicePointer(void** there, void* here, unsigned flags) {
    return runtime().cudaHostGetDevicePointer(there, here, flags);
}
EMULATED int cudaFreeHost(void* pointer) { return runtime().cudaFreeHost(pointer); }
EMULATED int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
    return runtime().cudaMemcpyAsync(to, from, bytes, static_cast<CopyKind>(kind),
                                     static_cast<Stream>(stream));
}
EMULATED int cudaMemsetAsync(void* pointer, int value, std::size_t bytes, void* stream) {
    return runtime().cudaMemsetAsync(pointer, value, bytes, static_cast<Stream>(stream));
}

// ---- streams and events ----

EMULATED int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
    return runtime().cudaStreamCreateWithFlags(reinterpret_cast<Stream*>(stream), flags);
}
EMULATED int cudaStreamDestroy(void* stream) {
    return runtime().cudaStreamDestroy(static_cast<Stream>(stream));
}
EMULATED int cudaStreamSynchronize(void* stream) {
    return runtime().cudaStreamSynchronize(static_cast<Stream>(stream));
}
EMULATED int cudaStreamQuery(void* stream) { return runtime().cudaStreamQuery(static_cast<Stream>(stream)); }
EMULATED int cudaEventCreateWithFlags(void** event, unsigned flags) {
    return runtime().cudaEventCreateWithFlags(reinterpret_cast<Event*>(event), flags);
}
EMULATED int cudaEventDestroy(void* event) { return runtime().cudaEventDestroy(static_cast<Event>(event)); }
EMULATED int cudaEventRecord(void* event, void* stream) {
    return runtime().cudaEventRecord(static_cast<Event>(event), static_cast<Stream>(stream));
}
EMULATED int cudaEventSynchronize(void* event) {
    return runtime().cudaEventSynchronize(static_cast<Event>(event));
}
EMULATED int cudaEventElapsedTime(float* milliseconds, void* first, void* last) {
    return runtime().cudaEventElapsedTime(milliseconds, static_cast<Event>(first), static_cast<Event>(last));
}

EMULATED int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* data) {
    return runtime().cudaLaunchHostFunc(static_cast<Stream>(stream), function, data);
}

// ---- kernels ----

EMULATED int cudaLibraryLoadData(void** library, const void* image, int* jit_options, void** jit_values,
                                 unsigned jit_count, int* options, void** values, unsigned count) {
    if (jit_count > 0 || count > 0) return error_invalid_value;
    return runtime().cudaLibraryLoadData(reinterpret_cast<Library*>(library), image, jit_options, jit_values,
                                         jit_count, options, values, count);
}
EMULATED int cudaLibraryUnload(void* library) {
    return runtime().cudaLibraryUnload(static_cast<Library>(library));
}
EMULATED int cudaLibraryGetKernel(void** kernel, void* library, const char* name) {
    return runtime().cudaLibraryGetKernel(reinterpret_cast<KernelFunction*>(kernel),
                                          static_cast<Library>(library), name);
}
EMULATED int cudaFuncGetAttributes(abi::FunctionProperties* attributes, const void* kernel) {
    FunctionAttributes ours;
    const Status status = runtime().cudaFuncGetAttributes(&ours, kernel);
    if (status != success) return status;
    *attributes = {};
    attributes->shared_bytes = ours.shared_bytes;
    attributes->most_threads = 1024;
    attributes->binary_version = 90;
    return success;
}
EMULATED int cudaLaunchKernelExC(const abi::LaunchConfiguration* config, const void* kernel,
                                 void** arguments) {
    if (!config || config->attribute_count > 0) return error_invalid_value;
    LaunchConfig ours;
    ours.grid = {config->grid.x, config->grid.y, config->grid.z};
    ours.block = {config->block.x, config->block.y, config->block.z};
    ours.dynamic_shared_bytes = config->dynamic_shared_bytes;
    ours.stream = static_cast<Stream>(config->stream);
    return runtime().cudaLaunchKernelExC(&ours, kernel, arguments);
}
