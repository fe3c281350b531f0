#include "gpu/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "bitale/error.h"
#include "codegen/program.h"
#include "gpu/record.h"
#include "gpu/settle.h"
#include "runtime/cuda/availability.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/device_name.h"
#include "runtime/cuda/emulator/table.h"

using namespace bitale;
using namespace bitale::cuda;

namespace bench {

Block::Block(Machine& machine, std::size_t bytes) : machine_(&machine) {
    // As everywhere in Bitale, 64 bytes past the end may be read.
    machine.require(machine.runtime().cudaMalloc(&data_, bytes + 64), "cudaMalloc");
}

Block::~Block() {
    if (data_) machine_->runtime().cudaFree(data_);
}

Block::Block(Block&& other) noexcept : machine_(other.machine_), data_(std::exchange(other.data_, nullptr)) {}

Machine::Machine(const std::string& device) {
    const std::optional<DeviceName> parsed = parse_device_name(device);
    if (!parsed || !parsed->architecture.empty())
        throw DeviceError(fmt::format("\"{}\" is no GPU that can be probed: cuda, cuda:1, emulator", device));
    if (!parsed->emulated) {
        if (const std::string why = why_unavailable(); !why.empty()) throw DeviceError(why);
    }
    index_ = parsed->index;
    backend_ = parsed->emulated ? emulator_backend(index_) : cuda_backend(index_);
    require(runtime().cudaSetDevice(index_), "cudaSetDevice");
    const auto properties = std::make_unique<DeviceProperties>();
    require(runtime().cudaGetDeviceProperties(properties.get(), index_), "cudaGetDeviceProperties");
    name_ = properties->name;
    emulated_ = backend_.runtime == &emulated_runtime() || name_ == "emulated GPU";
    if (!emulated_) clocks_ = Clocks(backend_.runtime, index_);
    target_ = fmt::format("sm_{}{}", attribute(capability_major), attribute(capability_minor));
    require(runtime().cudaStreamCreateWithFlags(&stream_, stream_non_blocking), "cudaStreamCreateWithFlags");
    require(runtime().cudaMallocHost(&pinned_, pinned_bytes), "cudaMallocHost");
    for (Event* event : {&begins_, &ends_})
        require(runtime().cudaEventCreateWithFlags(event, 0), "cudaEventCreateWithFlags");
}

const GraphTable& Machine::graphs() const {
    if (!backend_.graphs) throw NotHere(backend_.why_no_graphs);
    return *backend_.graphs;
}

const LoopTable& Machine::loops() const {
    if (!backend_.loops) throw NotHere(backend_.why_no_loops);
    return *backend_.loops;
}

int Machine::attribute(int number) const {
    int value = 0;
    const Status status =
        runtime().cudaDeviceGetAttribute(&value, static_cast<DeviceAttribute>(number), index_);
    return status == success ? value : 0;
}

void Machine::require(Status status, const char* what) const {
    if (status == success) return;
    const std::string after = launched_.empty() ? "" : ", after a launch of " + launched_;
    throw DeviceError(fmt::format("{} fails: {} ({}){}", what, runtime().cudaGetErrorString(status),
                                  runtime().cudaGetErrorName(status), after));
}

KernelFunction Machine::kernel(const std::string& name, const std::string& text) {
    KernelFunction& function = kernels_[name];
    if (function) return function;
    Program program;
    program.name = name;
    program.target = target_;
    KernelText& kernel = program.kernels.emplace_back();
    kernel.name = name;
    kernel.entries = {name};
    kernel.cuda_threads = {1};
    kernel.cuda_body = text;
    const Images images = backend_.compile(program, cuda_units(program));
    Library library = nullptr;
    require(runtime().cudaLibraryLoadData(&library, images.list.at(0).data(), nullptr, nullptr, 0, nullptr,
                                          nullptr, 0),
            "cudaLibraryLoadData");
    KernelFunction found = nullptr;
    require(runtime().cudaLibraryGetKernel(&found, library, name.c_str()), "cudaLibraryGetKernel");
    // CUDA may put off loading a kernel until somebody asks something of it.
    FunctionAttributes attributes;
    require(runtime().cudaFuncGetAttributes(&attributes, found), "cudaFuncGetAttributes");
    return function = found;
}

void Machine::launch(KernelFunction kernel, std::int64_t blocks, int threads, const void* arguments,
                     Stream stream) {
    for (const auto& [name, function] : kernels_)
        if (function == kernel && name != launched_) {
            launched_ = name;
            if (on_launch) on_launch(name);
        }
    LaunchConfig config;
    config.grid.x = static_cast<unsigned>(blocks);
    config.block.x = static_cast<unsigned>(threads);
    config.stream = stream;
    void* list[] = {const_cast<void*>(arguments)};
    require(runtime().cudaLaunchKernelExC(&config, kernel, list), "cudaLaunchKernelExC");
}

// Copies go through pinned memory, as those of the device do.
void Machine::upload(void* to, const void* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += pinned_bytes) {
        const std::size_t part = std::min(pinned_bytes, bytes - at);
        std::memcpy(pinned_, static_cast<const char*>(from) + at, part);
        require(
            runtime().cudaMemcpyAsync(static_cast<char*>(to) + at, pinned_, part, host_to_device, stream_),
            "copying to the GPU");
        wait();
    }
}

void Machine::download(void* to, const void* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += pinned_bytes) {
        const std::size_t part = std::min(pinned_bytes, bytes - at);
        require(runtime().cudaMemcpyAsync(pinned_, static_cast<const char*>(from) + at, part, device_to_host,
                                          stream_),
                "copying from the GPU");
        wait();
        std::memcpy(static_cast<char*>(to) + at, pinned_, part);
    }
}

void Machine::fill(void* block, int byte, std::size_t bytes) {
    require(runtime().cudaMemsetAsync(block, byte, bytes, stream_), "cudaMemsetAsync");
    wait();
}

void Machine::wait() { require(runtime().cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

double Machine::seconds(const std::function<void()>& work) {
    require(runtime().cudaEventRecord(begins_, stream_), "cudaEventRecord");
    work();
    require(runtime().cudaEventRecord(ends_, stream_), "cudaEventRecord");
    require(runtime().cudaEventSynchronize(ends_), "cudaEventSynchronize");
    float milliseconds = 0;
    require(runtime().cudaEventElapsedTime(&milliseconds, begins_, ends_), "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) / 1e3;
}

std::string Machine::gone() const {
    const Status status = runtime().cudaStreamSynchronize(stream_);
    return status == success ? "" : fmt::format("the GPU is gone: {}", runtime().cudaGetErrorString(status));
}

Block Machine::block(const std::vector<float>& values) {
    Block b(*this, values.size() * sizeof(float));
    upload(b.data(), values.data(), values.size() * sizeof(float));
    return b;
}

std::vector<float> Machine::floats(const Block& block, std::size_t count) {
    std::vector<float> values(count);
    download(values.data(), block.data(), count * sizeof(float));
    return values;
}

double settled_seconds(Machine& machine, bool reduced, Json& result,
                       const std::function<double(std::int64_t)>& run) {
    if (reduced) return few_rounds(1, 1, run).median();
    constexpr std::int64_t most_units = 100'000;
    const Rounds r = settled_rounds({1, 1, most_units, 7}, run, [&] { machine.clocks().note(); });
    result["warm_up"].push_back(r.warm_up());
    return r.median();
}

double median_of(int rounds, const std::function<double()>& measure) {
    measure();
    std::vector<double> times;
    for (int k = 0; k < rounds; ++k) times.push_back(measure());
    std::sort(times.begin(), times.end());
    const std::size_t middle = times.size() / 2;
    return times.size() % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
}

}  // namespace bench
