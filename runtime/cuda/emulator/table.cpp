#include "runtime/cuda/emulator/table.h"

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/cuda/emulator/blocks.h"
#include "runtime/cuda/emulator/checks.h"
#include "runtime/cuda/emulator/devices.h"
#include "runtime/cuda/emulator/entry.h"
#include "runtime/cuda/emulator/faults.h"
#include "runtime/cuda/emulator/graphs.h"
#include "runtime/cuda/emulator/image.h"
#include "runtime/cuda/emulator/memory.h"
#include "runtime/cuda/emulator/module.h"
#include "runtime/cuda/emulator/stream.h"

namespace bitale::cuda {

namespace {

constexpr Status error_invalid_image = 200;

Status refuse() {
    if (chosen_device() == no_device) return error_invalid_device;
    if (device_is_broken()) return launch_error();
    return refuse_while_capturing();
}

Status submit(Stream stream, Work work) {
    if (stream) {
        // A copy may go into the stream of another device; nothing else does.
        Status status = stream_of(stream).chosen();
        if (work.kind == Work::Kind::copy && status == error_invalid_handle) status = success;
        return status == success ? stream_of(stream).submit(std::move(work)) : status;
    }
    const Outcome outcome = outcome_of(work);
    while (outcome.hangs) std::this_thread::sleep_for(std::chrono::seconds(1));
    last_problem() = outcome.problem;
    return last_problem().empty() ? success : launch_error();
}

// ---- words ----

const char* error_name(Status status) {
    switch (status) {
        case success: return "cudaSuccess";
        case error_invalid_value: return "cudaErrorInvalidValue";
        case error_out_of_memory: return "cudaErrorMemoryAllocation";
        case error_insufficient_driver: return "cudaErrorInsufficientDriver";
        case error_invalid_device: return "cudaErrorInvalidDevice";
        case error_invalid_handle: return "cudaErrorInvalidResourceHandle";
        case error_invalid_image: return "cudaErrorInvalidKernelImage";
        case error_invalid_context: return "cudaErrorDeviceUninitialized";
        case error_not_found: return "cudaErrorSymbolNotFound";
        case error_not_ready: return "cudaErrorNotReady";
        case error_initialization: return "cudaErrorInitializationError";
        case error_illegal_address: return "cudaErrorIllegalAddress";
        case error_launch_failure: return "cudaErrorLaunchFailure";
        case error_capture_unsupported: return "cudaErrorStreamCaptureUnsupported";
        case error_capture_invalidated: return "cudaErrorStreamCaptureInvalidated";
        default: return "cudaErrorUnknown";
    }
}

const char* error_string(Status status) {
    switch (status) {
        case error_launch_failure:
        case error_invalid_image: return last_problem().c_str();
        case error_initialization:
            return fault_problem().empty() ? "initialization error" : fault_problem().c_str();
        case error_illegal_address: return "an illegal memory access was encountered";
        case error_out_of_memory: return "out of memory";
        case error_insufficient_driver: return "CUDA driver version is insufficient for CUDA runtime version";
        case error_invalid_device: return "no such device, or this thread has not chosen any";
        case error_invalid_handle: return "a stream or an event of another device than this thread's";
        case error_capture_unsupported: return "operation not permitted when stream is capturing";
        default: return error_name(status);
    }
}

// ---- memory ----

Status free_memory(void* pointer) {
    if (const Status refused = refuse(); refused != success) return refused;
    drain_streams();
    return release_device(pointer);
}

Status free_pinned(void* pointer) {
    if (const Status refused = refuse(); refused != success) return refused;
    drain_streams();
    return release_host(pointer);
}

Status copy(void* to, const void* from, std::size_t bytes, CopyKind kind, Stream stream) {
    if (bytes == 0) return success;
    const MemoryKind there = memory_kind(to, bytes), here = memory_kind(from, bytes);
    const auto right = [](MemoryKind found, bool device) {
        return device ? found == MemoryKind::device || found == MemoryKind::mapped
                      : found == MemoryKind::host || found == MemoryKind::mapped;
    };
    // CUDA takes unpinned host memory too, and waits then.
    if (!right(there, kind != device_to_host) || !right(here, kind != host_to_device))
        return error_invalid_value;
    Work work;
    work.kind = Work::Kind::copy;
    work.host_memory = there == MemoryKind::host || here == MemoryKind::host;
    work.run = [=]() -> Outcome {
        if (memory_kind(to, bytes) != there || memory_kind(from, bytes) != here)
            return {"a copy uses memory that was freed"};
        if (kind == device_to_host && emulator_checks())
            if (const std::string gap = unwritten_in(from, bytes); !gap.empty())
                return {"a copy to the host reads " + gap + ", which nobody has written"};
        std::memmove(to, from, bytes);
        copy_written(to, from, bytes);
        return {};
    };
    return submit(stream, std::move(work));
}

Status set(void* pointer, int value, std::size_t bytes, Stream stream) {
    if (bytes == 0) return success;
    if (memory_kind(pointer, bytes) != MemoryKind::device) return error_invalid_value;
    Work work;
    work.kind = Work::Kind::set;
    work.run = [=]() -> Outcome {
        if (memory_kind(pointer, bytes) != MemoryKind::device)
            return {"cudaMemsetAsync on memory that was freed"};
        std::memset(pointer, value, bytes);
        mark_written(pointer, bytes);
        return {};
    };
    return submit(stream, std::move(work));
}

// ---- kernels ----

std::mutex& planted_mutex() {
    static std::mutex& m = *new std::mutex;
    return m;
}
std::string& failing_kernel() {  // in the name of the kernel that is to fail
    static std::string& name = *new std::string;
    return name;
}

// Those that are loaded; most stay so to the end of the process, as generated objects do.
struct Modules {
    std::mutex mutex;
    std::set<const Module*> all;
};
Modules& modules() {
    static Modules& m = *new Modules;
    return m;
}

Status load_library(Library* library, const void* image, int*, void**, unsigned, int*, void**, unsigned) {
    if (const Status refused = refuse_while_capturing(); refused != success) return refused;
    const std::optional<std::string> object = object_in_image(image);
    std::string problem = "the image is no object of the emulator";
    std::unique_ptr<Module> module = object ? Module::load(*object, problem) : nullptr;
    if (!module) last_problem() = problem;
    {
        const std::lock_guard lock(modules().mutex);
        if (module) modules().all.insert(module.get());
    }
    *library = reinterpret_cast<Library>(module.release());
    return *library ? success : error_invalid_image;
}

Status unload_library(Library library) {
    drain_streams();
    {
        const std::lock_guard lock(modules().mutex);
        modules().all.erase(reinterpret_cast<Module*>(library));
    }
    delete reinterpret_cast<Module*>(library);
    return success;
}

Status find_kernel(KernelFunction* kernel, Library library, const char* name) {
    const EmulatedKernel* found = reinterpret_cast<Module*>(library)->find(name);
    *kernel = reinterpret_cast<KernelFunction>(const_cast<EmulatedKernel*>(found));
    return found ? success : error_not_found;
}

// Arguments are copied when the kernel is launched.
class CopiedArguments {
  public:
    CopiedArguments(const EmulatedKernel& kernel, void** arguments) {
        constexpr std::size_t unit = sizeof(std::max_align_t);
        for (const std::size_t bytes : kernel.argument_bytes) {
            places_.push_back(words_.size());
            words_.resize(words_.size() + (bytes + unit - 1) / unit);
            std::memcpy(words_.data() + places_.back(), *arguments++, bytes);
        }
    }
    std::vector<void*> list() {
        std::vector<void*> list;
        list.reserve(places_.size());
        for (const std::size_t place : places_) list.push_back(words_.data() + place);
        return list;
    }

  private:
    std::vector<std::max_align_t> words_;
    std::vector<std::size_t> places_;
};

// Of a kernel's arguments: memory of another device is none of theirs; what a kernel writes that is not
// watched counts as written.
std::string look_at_arguments(const EmulatedKernel& kernel, void** arguments, int device) {
    const bool watched = kernel.watched && emulator_checks();
    std::string problem;
    kernel.for_each_pointer(arguments, [&](const void* pointer, std::size_t place) {
        if (!watched) mark_block_written(pointer);
        const int owner = device_of(pointer);
        if (owner != no_device && owner != device && problem.empty())
            problem = fmt::format(
                "kernel {} runs on device {}, and its argument {} points into the memory of device {}",
                kernel.name, device, place, owner);
    });
    return problem;
}

Outcome run_kernel(const EmulatedKernel& kernel, const LaunchConfig& config, int device, void** arguments) {
    {
        const std::lock_guard lock(planted_mutex());
        if (!failing_kernel().empty() && kernel.name.find(failing_kernel()) != std::string::npos) {
            failing_kernel().clear();
            return {"kernel " + kernel.name + ": a planted failure"};
        }
    }
    if (std::string problem = look_at_arguments(kernel, arguments, device); !problem.empty())
        return {problem};
    const Fault::Kind fault = fault_of_launch(kernel.name);
    if (fault == Fault::Kind::hang) return {.problem = "", .hangs = true};
    if (fault == Fault::Kind::illegal) {
        break_device(device);
        return {error_string(error_illegal_address)};
    }
    std::string problem = run_blocks(kernel, config.grid, config.block, device, arguments);
    if (problem.empty()) problem = condition_problem();
    if (problem.empty() && fault == Fault::Kind::wrong) spoil_result(kernel, arguments);
    return {problem.empty() || problem.find(kernel.name) != std::string::npos
                ? problem
                : "kernel " + kernel.name + ": " + problem};
}

Status launch(const LaunchConfig* config, const void* kernel, void** arguments) {
    const unsigned threads = config->block.x * config->block.y * config->block.z;
    const unsigned blocks = config->grid.x * config->grid.y * config->grid.z;
    if (threads == 0 || threads > 1024 || blocks == 0 || config->dynamic_shared_bytes > 0)
        return error_invalid_value;
    const auto& what = *static_cast<const EmulatedKernel*>(kernel);
    Work work;
    const int device = config->stream ? stream_of(config->stream).device() : chosen_device();
    work.run = [what = &what, config = *config, device, copied = CopiedArguments(what, arguments)]() mutable {
        return run_kernel(*what, config, device, copied.list().data());
    };
    return submit(config->stream, std::move(work));
}

Status launch_host_function(Stream stream, HostFunction function, void* data) {
    if (!function) return error_invalid_value;
    Work work;
    work.kind = Work::Kind::host;
    work.host_memory = true;  // not in a body
    work.run = [=]() -> Outcome {
        function(data);
        return {};
    };
    return submit(stream, std::move(work));
}

// ---- events ----

struct EmulatedEvent {
    std::chrono::steady_clock::time_point at;
    EmulatedStream* stream = nullptr;
    std::atomic<bool> pending{false};
    int device = chosen_device();
};

Status record(Event event, Stream stream) {
    auto* e = reinterpret_cast<EmulatedEvent*>(event);
    if (stream && stream_of(stream).device() != e->device) return error_invalid_handle;
    Work work;
    work.kind = Work::Kind::event;
    work.run = [e]() -> Outcome {
        e->at = std::chrono::steady_clock::now();
        e->pending = false;
        return {};
    };
    e->stream = reinterpret_cast<EmulatedStream*>(stream);
    e->pending = true;
    try {
        const Status status = submit(stream, std::move(work));
        if (status != success) e->pending = false;
        return status;
    } catch (const std::bad_alloc&) {
        e->pending = false;  // nothing will set it
        throw;
    }
}

Status wait_for(Event event) {
    if (const Status refused = refuse(); refused != success) return refused;
    auto* e = reinterpret_cast<EmulatedEvent*>(event);
    while (e->pending)
        if (const Status status = e->stream->query(); status != success && status != error_not_ready)
            return status;
    return success;
}

Status elapsed(float* milliseconds, Event first, Event last) {
    const auto *from = reinterpret_cast<EmulatedEvent*>(first), *to = reinterpret_cast<EmulatedEvent*>(last);
    if (from->pending || to->pending) return error_not_ready;
    *milliseconds = std::chrono::duration<float, std::milli>(to->at - from->at).count();
    return success;
}

Status attribute(int* value, DeviceAttribute attribute, int device) {
    if (device < 0 || device >= emulated_devices()) return error_invalid_device;
    switch (attribute) {
        case shared_bytes_per_block: *value = 48 << 10; return success;
        case multiprocessors: *value = 8; return success;
        case capability_major: *value = 9; return success;
        case capability_minor: *value = 0; return success;
    }
    return error_invalid_value;
}

template <class F>
Status on_stream(Stream stream, F&& f) {
    if (chosen_device() == no_device) return error_invalid_device;
    if (device_is_broken()) return launch_error();
    return stream ? f(stream_of(stream)) : success;
}

RuntimeTable make_table() {
    RuntimeTable t;
    t.cudaGetDeviceCount = [](int* count) {
        return *count = emulated_devices(), fault_problem().empty() ? success : error_initialization;
    };
    t.cudaSetDevice = [](int device) {
        if (!fault_problem().empty()) return error_initialization;
        if (device < 0 || device >= emulated_devices()) return error_invalid_device;
        chosen_device() = device;
        return success;
    };
    t.cudaGetDeviceProperties = [](DeviceProperties* p, int device) {
        if (device < 0 || device >= emulated_devices()) return error_invalid_device;
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
    t.cudaMalloc = [](void** pointer, std::size_t bytes) {
        const Status refused = refuse();
        return refused == success ? allocate_device(pointer, bytes) : refused;
    };
    t.cudaFree = free_memory;
    t.cudaMallocHost = [](void** pointer, std::size_t bytes) {
        const Status refused = refuse();
        return refused == success ? allocate_host(pointer, bytes) : refused;
    };
    t.cudaHostAlloc = [](void** pointer, std::size_t bytes, unsigned flags) {
        const Status refused = refuse();
        if (refused != success) return refused;
        return flags & host_memory_is_mapped ? allocate_mapped(pointer, bytes)
                                             : allocate_host(pointer, bytes);
    };
    t.cudaHostGetDevicePointer = [](void** there, void* here, unsigned) {
        if (memory_kind(here, 1) != MemoryKind::mapped) return error_invalid_value;
        return *there = here, success;
    };
    t.cudaFreeHost = free_pinned;
    t.cudaMemcpyAsync = copy;
    t.cudaMemsetAsync = set;
    t.cudaStreamCreateWithFlags = [](Stream* stream, unsigned) {
        const Status refused = refuse();
        if (refused == success) *stream = reinterpret_cast<Stream>(new_stream());
        return refused;
    };
    t.cudaStreamDestroy = [](Stream stream) {
        return delete_stream(reinterpret_cast<EmulatedStream*>(stream)), success;
    };
    t.cudaStreamSynchronize = [](Stream stream) {
        return on_stream(stream, [](EmulatedStream& s) { return s.synchronize(); });
    };
    t.cudaStreamQuery = [](Stream stream) {
        return on_stream(stream, [](EmulatedStream& s) { return s.query(); });
    };
    t.cudaEventCreateWithFlags = [](Event* event, unsigned) {
        *event = reinterpret_cast<Event>(new EmulatedEvent);
        return success;
    };
    t.cudaEventDestroy = [](Event event) {
        drain_streams();  // one of them may be about to set it
        return delete reinterpret_cast<EmulatedEvent*>(event), success;
    };
    t.cudaEventRecord = record;
    t.cudaEventSynchronize = wait_for;
    t.cudaEventElapsedTime = elapsed;
    t.cudaLibraryLoadData = load_library;
    t.cudaLibraryUnload = unload_library;
    t.cudaLibraryGetKernel = find_kernel;
    t.cudaFuncGetAttributes = [](FunctionAttributes* attributes, const void* kernel) {
        *attributes = {};
        for (const SharedArray& a : static_cast<const EmulatedKernel*>(kernel)->shared)
            attributes->shared_bytes += a.bytes;
        return success;
    };
    t.cudaLaunchKernelExC = launch;
    t.cudaLaunchHostFunc = launch_host_function;
#define BITALE_ENTRY(result, name, arguments) Entry<&RuntimeTable::name>::put(t);
    BITALE_CUDA_RUNTIME(BITALE_ENTRY)
#undef BITALE_ENTRY
    return t;
}

}  // namespace

const RuntimeTable& emulated_runtime() {
    static RuntimeTable table = make_table();  // tests put functions of their own around these
    return table;
}

void plant_failure(const std::string& kernel) {
    const std::lock_guard lock(planted_mutex());
    failing_kernel() = kernel;
}

}  // namespace bitale::cuda
