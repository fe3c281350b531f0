#include "runtime/cuda/loop_kernels.h"

#include <fmt/format.h>

#include <utility>

#include "graph/base/check.h"
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
    i64 results;
};
struct loop_arguments {
    loop_state* state;
    const i64* errors;
    const volatile i64* stop;
    volatile i64* progress;
    unsigned long long handle;
    i64 collects, steps;
};

static __device__ __forceinline__ bool has_failed(const loop_arguments& a) { return a.errors && *a.errors; }

static __device__ __forceinline__ void collect_result(const loop_result& result, i64 position, i64 first,
                                                      i64 stride) {
    const i64 bytes = result.bytes;
    const char* from = result.from;
    char* to = result.to + position * bytes;  // both begin at multiples of 256 bytes for position 0
    if (bytes % 4 == 0)
        for (i64 i = first; i < bytes / 4; i += stride) ((int*)to)[i] = ((const int*)from)[i];
    else
        for (i64 i = first; i < bytes; i += stride) to[i] = from[i];
}

// Small results, by one block of eight warps: each by one, two, four or all of them, so that no result waits
// for the one before it.
static __device__ __forceinline__ void collect_small(const loop_result* result, i64 results, i64 position) {
    const int shift = results > 4 ? 3 : results > 2 ? 2 : results > 1 ? 1 : 0;
    const int warp = threadIdx.x >> 5, first = (warp >> shift << 5) + (threadIdx.x & 31);
    for (i64 r = warp & ((1 << shift) - 1); r < results; r += 1 << shift) {
        const loop_result mine = result[r];
        collect_result(mine, position, first, blockDim.x >> shift);
    }
}

// One more step is done, and the index of the next one, if there is one, in place: by one block. Returns how
// many are done. `s`: the state as it was. Every load is a wait, so what is known where to find is loaded
// before it is needed.
static __device__ __forceinline__ i64 end_step(const loop_arguments& a, const loop_state& s) {
    const i64 done = s.position + 1;
    const bool more = done < s.end;
    const i64 value = !more ? 0 : s.values ? s.values[done] : s.first + done;
    if (a.collects) collect_small((const loop_result*)(a.state + 1), s.results, s.position);
    __syncthreads();
    if (threadIdx.x != 0) return done;
    a.state->position = done;
    if (more) {
        if (s.index_bytes == 8) *(i64*)s.index = value;
        if (s.index_bytes == 4) *(int*)s.index = (int)value;
        if (s.index_bytes == 2) *(short*)s.index = (short)value;
        if (s.index_bytes == 1) *s.index = (char)value;
    }
    return done;
}

static __device__ __forceinline__ void tell_host(const loop_arguments& a, i64 done) {
    *a.progress = done;
    __threadfence_system();
}
)";

constexpr const char* advance_text = R"(
extern "C" __global__ __launch_bounds__(256) void bitale_advance(const loop_arguments a) {
    const loop_state s = *a.state;
    if (has_failed(a)) return;
    const i64 done = end_step(a, s);
    if (threadIdx.x == 0) tell_host(a, done);
}
extern "C" __global__ __launch_bounds__(256) void bitale_go_on(const loop_arguments a) {
    const loop_state s = *a.state;
    if (!has_failed(a)) end_step(a, s);
}
extern "C" __global__ __launch_bounds__(256) void bitale_advance_collect(const loop_arguments a) {
    if (has_failed(a)) return;
    const i64 results = a.state->results, position = a.state->position;
    for (i64 r = 0; r < results; ++r)
        collect_result(((const loop_result*)(a.state + 1))[r], position,
                       (i64)blockIdx.x * blockDim.x + threadIdx.x, (i64)gridDim.x * blockDim.x);
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

// The host's word is a read over PCIe, and telling the host a write that is waited for. The first begins at
// once, in the warp that has the fewest results to copy, as a warp waits for all that it reads; the second is
// under way while the condition is set. After a failure the steps before it are told: those of the same turn
// told nothing.
constexpr const char* repeat_text = R"(
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
extern "C" __global__ __launch_bounds__(256) void bitale_repeat(const loop_arguments a) {
    __shared__ i64 stops;
    if (threadIdx.x == blockDim.x - 1) stops = *a.stop;
    const loop_state s = *a.state;
    const bool failed = has_failed(a);
    const i64 done = failed ? s.position : end_step(a, s);
    if (threadIdx.x == 32) tell_host(a, done);
    if (threadIdx.x == 0)
        cudaGraphSetConditional(a.handle, !failed && stops == 0 && done + a.steps <= s.end ? 1u : 0u);
}
)";

constexpr const char* entry_names[] = {"bitale_advance", "bitale_go_on", "bitale_repeat",
                                       "bitale_advance_collect", "bitale_commit"};
const char* entry_name(LoopKernel kernel) { return entry_names[static_cast<std::size_t>(kernel)]; }

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
        add("bitale_advance", {"bitale_advance", "bitale_go_on", "bitale_advance_collect"}, advance_text);
        add("bitale_commit", {"bitale_commit"}, commit_text);
    }
    return program;
}

// The turn is given away while a compiler works: another thread may be ready by now, and its graphs hold its
// kernels. Those that come second are dropped.
void LoopKernels::prepare(const std::string& target, Turn* turn) {
    if (ready_) return;
    Loaded loaded;
    std::string why_not;
    try {
        loaded = load(target, turn);
    } catch (const CompileError& e) {
        why_not = e.what();
    }
    if (ready_) return;
    ready_ = why_not.empty();
    why_not_ = std::move(why_not);
    why_no_repeat_ = ready_ ? std::move(loaded.why_no_repeat) : why_not_;
    if (ready_) loaded_ = std::move(loaded);
}

LoopKernels::Loaded LoopKernels::load(const std::string& target, Turn* turn) {
    const Program program = loop_program(target, false);
    Loaded r;
    r.libraries = load_units(context_, program, cuda_units(program), turn).libraries;
    for (const LoopKernel k :
         {LoopKernel::advance, LoopKernel::go_on, LoopKernel::collect, LoopKernel::commit}) {
        const RuntimeTable& runtime = context_.runtime();
        KernelFunction found = nullptr;
        FunctionAttributes attributes;  // CUDA may put off loading a kernel until somebody asks
        context_.check(runtime.cudaLibraryGetKernel(&found, r.libraries.at(0).get(), entry_name(k)),
                       "cudaLibraryGetKernel");
        context_.check(runtime.cudaFuncGetAttributes(&attributes, found), "cudaFuncGetAttributes");
        r.function(k) = found;
    }
    load_repeat(r, target, turn);
    return r;
}

// A driver without loops in graphs refuses the function that `repeat` calls, and goes on. The refusal may
// come with any of these calls. By now it is known what code the driver takes.
void LoopKernels::load_repeat(Loaded& loaded, const std::string& target, Turn* turn) {
    const Program program = loop_program(target, true);
    const RuntimeTable& runtime = context_.runtime();
    try {
        const Images images =
            without_turn(turn, [&] { return context_.backend().compile(program, cuda_units(program)); });
        OwnedLibrary library(context_);
        KernelFunction found = nullptr;
        FunctionAttributes attributes;
        Status status = runtime.cudaLibraryLoadData(library.put(), images.list.at(0).data(), nullptr, nullptr,
                                                    0, nullptr, nullptr, 0);
        if (status == success)
            status = runtime.cudaLibraryGetKernel(&found, library.get(), entry_name(LoopKernel::repeat));
        if (status == success) status = runtime.cudaFuncGetAttributes(&attributes, found);
        if (status == error_out_of_memory || context_.is_broken()) context_.check(status, "loading kernels");
        if (status == success) {
            loaded.libraries.push_back(std::move(library));
            loaded.function(LoopKernel::repeat) = found;
        } else {
            loaded.why_no_repeat =
                fmt::format("the driver does not load a kernel that calls cudaGraphSetConditional: {} ({})",
                            runtime.cudaGetErrorString(status), runtime.cudaGetErrorName(status));
        }
    } catch (const CompileError& e) {
        loaded.why_no_repeat = e.what();
    }
}

void LoopKernels::require() const {
    if (!why_not_.empty()) throw CompileError("the kernels that end a loop's steps: " + why_not_);
}

AllLoopKernels::AllLoopKernels(Context& context, std::string target)
    : backend_(context.backend()),
      target_(std::move(target)),
      kernels_{LoopKernels(context), LoopKernels(context)} {}

const LoopKernels& AllLoopKernels::prepare(Turn* turn) {
    const std::size_t watched = backend_.separate_buffers && backend_.separate_buffers() ? 1 : 0;
    kernels_[watched].prepare(target_, turn);
    latest_ = watched;
    return kernels_[watched];
}

void LoopKernels::launch(LoopKernel kernel, const void* arguments, unsigned blocks, Stream stream,
                         const LaunchWords& words, LaunchNote note) const {
    const auto index = static_cast<std::size_t>(kernel);
    BITALE_CHECK(loaded_.functions[index], "a kernel that ends a loop's step is not loaded");
    LaunchConfig config;
    config.grid.x = blocks;
    config.block.x = threads;
    config.stream = stream;
    void* list[] = {const_cast<void*>(arguments)};
    note.name = entry_names[index];
    context_.launched(
        start_kernel(context_.runtime(), config, loaded_.functions[index], list), stream,
        [&] {
            return fmt::format("kernel {} ({} blocks of {} threads), {}", entry_names[index], blocks, threads,
                               words());
        },
        note);
}

}  // namespace bitale::cuda
