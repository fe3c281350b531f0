#include "runtime/cuda/emulator/table.h"

#include <chrono>
#include <cstring>
#include <memory>

#include "runtime/cuda/emulator/blocks.h"
#include "runtime/cuda/emulator/memory.h"
#include "runtime/cuda/emulator/module.h"

namespace bitale::cuda {

namespace {

constexpr Status error_invalid_value = 1, error_not_found = 500, error_launch_failure = 719;

// What went wrong in the last launch of this thread, for cudaGetErrorString.
std::string& last_problem() {
    thread_local std::string problem;
    return problem;
}

struct EmulatedEvent {
    std::chrono::steady_clock::time_point at;
};

Status load_library(Library* library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, image, sizeof bytes);
    std::unique_ptr<Module> module =
        Module::load({static_cast<const char*>(image) + sizeof bytes, bytes}, last_problem());
    *library = reinterpret_cast<Library>(module.release());
    return *library ? success : error_invalid_value;
}

Status unload_library(Library library) {
    delete reinterpret_cast<Module*>(library);
    return success;
}

Status find_kernel(KernelFunction* kernel, Library library, const char* name) {
    const EmulatedKernel* found = reinterpret_cast<Module*>(library)->find(name);
    *kernel = reinterpret_cast<KernelFunction>(const_cast<EmulatedKernel*>(found));
    return found ? success : error_not_found;
}

Status launch(const LaunchConfig* config, const void* kernel, void** arguments) {
    const unsigned threads = config->block.x * config->block.y * config->block.z;
    const unsigned blocks = config->grid.x * config->grid.y * config->grid.z;
    if (threads == 0 || threads > 1024 || blocks == 0 || config->dynamic_shared_bytes > 0)
        return error_invalid_value;
    last_problem() =
        run_blocks(*static_cast<const EmulatedKernel*>(kernel), config->grid, config->block, arguments);
    return last_problem().empty() ? success : error_launch_failure;
}

const char* error_name(Status status) {
    switch (status) {
        case success: return "cudaSuccess";
        case error_invalid_value: return "cudaErrorInvalidValue";
        case error_out_of_memory: return "cudaErrorMemoryAllocation";
        case error_not_found: return "cudaErrorSymbolNotFound";
        case error_launch_failure: return "cudaErrorLaunchFailure";
        default: return "cudaErrorUnknown";
    }
}

const char* error_string(Status status) {
    if (status == error_launch_failure || !last_problem().empty()) return last_problem().c_str();
    return status == error_out_of_memory ? "out of memory" : error_name(status);
}

Status attribute(int* value, DeviceAttribute attribute, int) {
    switch (attribute) {
        case shared_bytes_per_block: *value = 48 << 10; return success;
        case multiprocessors: *value = 8; return success;
        case capability_major: *value = 9; return success;
        case capability_minor: *value = 0; return success;
    }
    return error_invalid_value;
}

RuntimeTable make_table() {
    RuntimeTable t;
    t.cudaGetDeviceCount = [](int* count) { return *count = 1, success; };
    t.cudaSetDevice = [](int) { return success; };
    t.cudaGetDeviceProperties = [](DeviceProperties* p, int) {
        std::memset(p, 0, sizeof *p);
        std::strcpy(p->name, "emulated GPU");
        return success;
    };
    t.cudaDeviceGetAttribute = attribute;
    t.cudaRuntimeGetVersion = [](int* version) { return *version = 13000, success; };
    t.cudaDriverGetVersion = t.cudaRuntimeGetVersion;
    t.cudaGetErrorName = error_name;
    t.cudaGetErrorString = error_string;
    t.cudaMemGetInfo = [](std::size_t* free, std::size_t* total) {
        return memory_left(free, total), success;
    };
    t.cudaMalloc = allocate_device;
    t.cudaFree = release_device;
    t.cudaMallocHost = allocate_host;
    t.cudaFreeHost = release_host;
    t.cudaMemcpyAsync = [](void* to, const void* from, std::size_t bytes, CopyKind, Stream) {
        if (bytes > 0) std::memmove(to, from, bytes);
        return success;
    };
    t.cudaMemsetAsync = [](void* pointer, int value, std::size_t bytes, Stream) {
        if (bytes > 0) std::memset(pointer, value, bytes);
        return success;
    };
    t.cudaStreamCreateWithFlags = [](Stream* stream, unsigned) { return *stream = nullptr, success; };
    t.cudaStreamDestroy = [](Stream) { return success; };
    t.cudaStreamSynchronize = [](Stream) { return success; };
    t.cudaEventCreateWithFlags = [](Event* event, unsigned) {
        *event = reinterpret_cast<Event>(new EmulatedEvent);
        return success;
    };
    t.cudaEventDestroy = [](Event event) { return delete reinterpret_cast<EmulatedEvent*>(event), success; };
    t.cudaEventRecord = [](Event event, Stream) {
        reinterpret_cast<EmulatedEvent*>(event)->at = std::chrono::steady_clock::now();
        return success;
    };
    t.cudaEventElapsedTime = [](float* milliseconds, Event first, Event last) {
        const auto from = reinterpret_cast<EmulatedEvent*>(first)->at,
                   to = reinterpret_cast<EmulatedEvent*>(last)->at;
        *milliseconds = std::chrono::duration<float, std::milli>(to - from).count();
        return success;
    };
    t.cudaLibraryLoadData = load_library;
    t.cudaLibraryUnload = unload_library;
    t.cudaLibraryGetKernel = find_kernel;
    t.cudaLaunchKernelExC = launch;
    return t;
}

}  // namespace

const RuntimeTable& emulated_runtime() {
    static const RuntimeTable table = make_table();
    return table;
}

std::string emulated_image(const std::string& shared_object) {
    const std::uint64_t bytes = shared_object.size();
    std::string image(sizeof bytes, '\0');
    std::memcpy(image.data(), &bytes, sizeof bytes);
    return image + shared_object;
}

}  // namespace bitale::cuda
