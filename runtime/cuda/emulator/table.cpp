#include "runtime/cuda/emulator/table.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "runtime/cuda/emulator/blocks.h"

namespace bitale::cuda {

namespace {

constexpr Status error_invalid_value = 1, error_not_found = 500, error_launch_failure = 719;

struct Memory {
    std::mutex mutex;
    std::map<void*, std::size_t> blocks;
    std::size_t used = 0, limit = 0;
};
Memory& memory() {
    static Memory& m = *new Memory;
    return m;
}

// What went wrong in the last launch of this thread, for cudaGetErrorString.
std::string& last_problem() {
    thread_local std::string problem;
    return problem;
}

struct EmulatedEvent {
    std::chrono::steady_clock::time_point at;
};

Status allocate(void** pointer, std::size_t bytes) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    *pointer = nullptr;
    if (m.limit > 0 && m.used + bytes > m.limit) return error_out_of_memory;
    const std::size_t size = (std::max<std::size_t>(bytes, 1) + 255) / 256 * 256;
    void* block = std::aligned_alloc(256, size);
    if (!block) return error_out_of_memory;
    std::memset(block, 0xff, size);  // NaN: nobody may count on zeros
    m.blocks.emplace(block, bytes);
    m.used += bytes;
    *pointer = block;
    return success;
}

Status release(void* pointer) {
    if (!pointer) return success;
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    const auto at = m.blocks.find(pointer);
    if (at == m.blocks.end()) return error_invalid_value;
    m.used -= at->second;
    m.blocks.erase(at);
    std::free(pointer);
    return success;
}

Status load_library(Library* library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, image, sizeof bytes);
    // A file of its own name: the loader takes equal names for the same object.
    const char* base = std::getenv("TMPDIR");
    std::string path = std::string(base && *base ? base : "/tmp") + "/bitale-module-XXXXXX";
    const int file = mkstemp(path.data());
    if (file < 0) return error_out_of_memory;
    const char* from = static_cast<const char*>(image) + sizeof bytes;
    for (std::uint64_t done = 0; done < bytes;) {
        const ssize_t n = write(file, from + done, bytes - done);
        if (n <= 0) {
            close(file);
            unlink(path.c_str());
            return error_out_of_memory;
        }
        done += static_cast<std::uint64_t>(n);
    }
    close(file);
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) last_problem() = dlerror();
    unlink(path.c_str());
    *library = static_cast<Library>(handle);
    return handle ? success : error_invalid_value;
}

Status find_kernel(KernelFunction* kernel, Library library, const char* name) {
    *kernel = reinterpret_cast<KernelFunction>(dlsym(library, (std::string("emulated_") + name).c_str()));
    return *kernel ? success : error_not_found;
}

Status launch(const LaunchConfig* config, const void* kernel, void** arguments) {
    using Entry = void (*)(void* state, void** arguments);
    const auto entry = reinterpret_cast<Entry>(reinterpret_cast<std::uintptr_t>(kernel));
    const unsigned threads = config->block.x * config->block.y * config->block.z;
    const unsigned blocks = config->grid.x * config->grid.y * config->grid.z;
    if (threads == 0 || threads > 1024 || blocks == 0 || config->dynamic_shared_bytes > 0)
        return error_invalid_value;
    last_problem() = run_blocks(config->grid, config->block, [&] { entry(&emulator_state(), arguments); });
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
        Memory& m = memory();
        const std::lock_guard lock(m.mutex);
        *total = m.limit > 0 ? m.limit : std::size_t{1} << 34;
        *free = *total - std::min(*total, m.used);
        return success;
    };
    t.cudaMalloc = allocate;
    t.cudaFree = release;
    t.cudaMallocHost = [](void** pointer, std::size_t bytes) {
        *pointer = std::malloc(std::max<std::size_t>(bytes, 1));
        return *pointer ? success : error_out_of_memory;
    };
    t.cudaFreeHost = [](void* pointer) { return std::free(pointer), success; };
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
    t.cudaLibraryUnload = [](Library library) {
        return dlclose(library) == 0 ? success : error_invalid_value;
    };
    t.cudaLibraryGetKernel = find_kernel;
    t.cudaLaunchKernelExC = launch;
    return t;
}

}  // namespace

const RuntimeTable& emulated_runtime() {
    static const RuntimeTable table = make_table();
    return table;
}

void set_emulated_memory(std::int64_t bytes) {
    Memory& m = memory();
    const std::lock_guard lock(m.mutex);
    m.limit = static_cast<std::size_t>(bytes);
}

std::string emulated_image(const std::string& shared_object) {
    const std::uint64_t bytes = shared_object.size();
    std::string image(sizeof bytes, '\0');
    std::memcpy(image.data(), &bytes, sizeof bytes);
    return image + shared_object;
}

}  // namespace bitale::cuda
