#include "runtime/cuda/loop_kernels.h"

#include <fmt/format.h>

#include <utility>

#include "runtime/cuda/loading.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/cuda/outside.h"

namespace bitale::cuda {

namespace {

constexpr const char* structs = R"(typedef long long i64;
struct loop_result { const char* from; char* to; i64 bytes; };
struct loop_state {
    const i64* values;
    i64 first, position, end;
    char* index;
    i64 index_bytes;
    const i64* errors;
    const volatile i64* stop;
    volatile i64* progress;
    i64 results;
};

// The results of this step, shared out among all threads; each array begins at a multiple of 256 bytes.
static __device__ __forceinline__ void collect_results(loop_state* state, i64 first, i64 stride) {
    const loop_result* result = (const loop_result*)(state + 1);
    for (i64 r = 0; r < state->results; ++r) {
        const i64 bytes = result[r].bytes;
        char* to = result[r].to + state->position * bytes;
        if (bytes % 4 == 0)
            for (i64 i = first; i < bytes / 4; i += stride) ((int*)to)[i] = ((const int*)result[r].from)[i];
        else
            for (i64 i = first; i < bytes; i += stride) to[i] = result[r].from[i];
    }
}

// One more step is done: true when there is a next one, whose index is then in place.
static __device__ __forceinline__ bool next_step(loop_state* state) {
    const i64 position = state->position + 1;
    state->position = position;
    *state->progress = position;
    __threadfence_system();
    if (position >= state->end) return false;
    const i64 value = state->values ? state->values[position] : state->first + position;
    if (state->index_bytes == 8) *(i64*)state->index = value;
    if (state->index_bytes == 4) *(int*)state->index = (int)value;
    if (state->index_bytes == 2) *(short*)state->index = (short)value;
    if (state->index_bytes == 1) *state->index = (char)value;
    return *state->stop == 0;
}
)";

constexpr const char* advance_text = R"(
struct bitale_advance_arguments { loop_state* state; unsigned long long handle; i64 collects; };
extern "C" __global__ __launch_bounds__(256) void bitale_advance(const bitale_advance_arguments a) {
    if (a.state->errors && *a.state->errors) return;
    if (a.collects) collect_results(a.state, threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0) next_step(a.state);
}
extern "C" __global__ __launch_bounds__(256) void bitale_advance_collect(const bitale_advance_arguments a) {
    if (a.state->errors && *a.state->errors) return;
    collect_results(a.state, (i64)blockIdx.x * blockDim.x + threadIdx.x, (i64)gridDim.x * blockDim.x);
}
)";

// Buffers begin at multiples of 64 bytes.
constexpr const char* commit_text = R"(
struct bitale_commit_arguments { const long long* errors; const char* from; char* to; long long bytes; };
extern "C" __global__ __launch_bounds__(256) void bitale_commit(const bitale_commit_arguments a) {
    if (*a.errors) return;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long words = a.bytes / 8;
    for (long long i = first; i < words; i += stride) ((long long*)a.to)[i] = ((const long long*)a.from)[i];
    for (long long i = words * 8 + first; i < a.bytes; i += stride) a.to[i] = a.from[i];
}
)";

constexpr const char* repeat_text = R"(
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
struct bitale_repeat_arguments { loop_state* state; unsigned long long handle; i64 collects; };
extern "C" __global__ __launch_bounds__(256) void bitale_repeat(const bitale_repeat_arguments a) {
    const bool failed = a.state->errors && *a.state->errors;
    if (!failed && a.collects) collect_results(a.state, threadIdx.x, blockDim.x);
    __syncthreads();
    if (threadIdx.x == 0) cudaGraphSetConditional(a.handle, !failed && next_step(a.state) ? 1u : 0u);
}
)";

constexpr const char* entry_names[] = {"bitale_advance", "bitale_repeat", "bitale_advance_collect",
                                       "bitale_commit"};

}  // namespace

Program loop_program(const std::string& target, bool repeating) {
    Program program;
    program.name = repeating ? "repeat" : "loop";
    program.target = target;
    program.cuda_prelude = structs;
    const auto add = [&](const char* name, std::vector<std::string> entries, const char* text) {
        KernelText& kernel = program.kernels.emplace_back();
        kernel.name = name;
        kernel.entries = std::move(entries);
        kernel.cuda_threads.assign(kernel.entries.size(), LoopKernels::threads);
        kernel.cuda_body = text;
    };
    if (repeating) {
        add("bitale_repeat", {"bitale_repeat"}, repeat_text);
    } else {
        add("bitale_advance", {"bitale_advance", "bitale_advance_collect"}, advance_text);
        add("bitale_commit", {"bitale_commit"}, commit_text);
    }
    return program;
}

LoopKernels::LoopKernels(Context& context, std::string target)
    : context_(context), target_(std::move(target)) {}

void LoopKernels::prepare(LoopKernel kernel) {
    const Backend& backend = context_.backend();
    // Kernels that are not watched would hide what they write from the emulator's checks.
    if (const bool watched = backend.separate_buffers && backend.separate_buffers(); watched != watched_) {
        functions_ = {};
        watched_ = watched;
    }
    if (functions_[static_cast<std::size_t>(kernel)]) return;
    const RuntimeTable& runtime = context_.runtime();
    const bool repeating = kernel == LoopKernel::repeat;
    const Program program = loop_program(target_, repeating);
    Library library = nullptr;
    if (repeating) {
        // A driver without loops in graphs refuses the function that `repeat` calls, and goes on.
        prepare(LoopKernel::advance);  // by then it is known what code the driver takes
        const Images images = context_.backend().compile(program, cuda_units(program));
        const Status status = runtime.cudaLibraryLoadData(&library, images.list.at(0).data(), nullptr,
                                                          nullptr, 0, nullptr, nullptr, 0);
        if (status != success)
            throw CaptureError(std::string("the driver does not load a kernel that calls "
                                           "cudaGraphSetConditional: ") +
                               runtime.cudaGetErrorString(status));
    } else {
        library = load_units(context_, program, cuda_units(program)).libraries.at(0);
    }
    for (std::size_t k = 0; k < functions_.size(); ++k) {
        if ((static_cast<LoopKernel>(k) == LoopKernel::repeat) != repeating) continue;
        KernelFunction function = nullptr;
        // CUDA may put off loading a kernel until somebody asks something of it: the refusal of a driver
        // without loops may come with either call.
        FunctionAttributes attributes;
        const auto ask = [&](Status status, const char* what) {
            try {
                context_.check(status, what);
            } catch (const DeviceError& e) {
                if (!repeating || context_.is_broken()) throw;
                throw CaptureError(
                    std::string("the driver does not load a kernel that calls cudaGraphSetConditional: ") +
                    e.what());
            }
        };
        ask(runtime.cudaLibraryGetKernel(&function, library, entry_names[k]), "cudaLibraryGetKernel");
        ask(runtime.cudaFuncGetAttributes(&attributes, function), "cudaFuncGetAttributes");
        functions_[k] = function;
    }
}

void LoopKernels::launch(LoopKernel kernel, const void* arguments, unsigned blocks, Stream stream,
                         const LaunchWords& words, LaunchNote note) {
    prepare(kernel);
    LaunchConfig config;
    config.grid.x = blocks;
    config.block.x = threads;
    config.stream = stream;
    void* list[] = {const_cast<void*>(arguments)};
    const auto index = static_cast<std::size_t>(kernel);
    note.name = entry_names[index];
    context_.launched(
        start_kernel(context_.runtime(), config, functions_[index], list), stream,
        [&] {
            return fmt::format("kernel {} ({} blocks of {} threads), {}", entry_names[index], blocks, threads,
                               words());
        },
        note);
}

}  // namespace bitale::cuda
