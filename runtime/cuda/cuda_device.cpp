#include "runtime/cuda/cuda_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "graph/base/options.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/pool.h"
#include "runtime/cuda/availability.h"
#include "runtime/cuda/cubins.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/device_name.h"
#include "runtime/cuda/emulator/checks.h"
#include "runtime/cuda/emulator/compile.h"
#include "runtime/cuda/emulator/counted.h"
#include "runtime/cuda/emulator/devices.h"
#include "runtime/cuda/emulator/graphs.h"
#include "runtime/cuda/emulator/stream.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/cuda/libraries.h"
#include "runtime/cuda/target.h"

namespace bitale {

namespace {

using namespace cuda;  // NOLINT

class CudaDevice : public Device {
  public:
    CudaDevice(std::string name, Backend backend)
        : Device(std::move(name), Calls::in_turns), backend_(std::move(backend)) {}

    std::optional<Target> target() override {
        if (backend_.began_in_parent())
            throw DeviceError(fmt::format("device {} cannot be used: {}", name(), forked_words));
        Target t = target_of("sm_" + architecture());
        t.has_gemm = backend_.has_gemm();
        t.has_conv = backend_.has_conv();
        return t;
    }

    std::unique_ptr<Executable> prepare(Build build) override {
        Turn turn(turns());
        Gpu& gpu = this->gpu();
        CudaRunner::Kernels kernels = CudaRunner::compiled(build, gpu, &turn);
        gpu.context.exact_blocks = backend_.separate_buffers && backend_.separate_buffers();
        return std::make_unique<CudaRunner>(build, gpu, std::move(kernels));
    }

    Timing timing() override {
        return {"", backend_.runtime == &emulated_runtime()
                        ? "times of the emulator say nothing about a GPU"
                        : "on a GPU libraries are chosen by the sizes of products"};
    }
    std::string summary() override { return backend_.summary(); }

  private:
    // Made at the first use: nobody else pays for it.
    Gpu& gpu() {
        if (!gpu_)
            gpu_ =
                std::make_unique<Gpu>(backend_, static_cast<Device*>(this), name(), "sm_" + architecture());
        return *gpu_;
    }
    std::string architecture() const {
        int major = 0, minor = 0;
        backend_.runtime->cudaDeviceGetAttribute(&major, capability_major, backend_.index);
        backend_.runtime->cudaDeviceGetAttribute(&minor, capability_minor, backend_.index);
        return std::to_string(major * 10 + minor);
    }

    const Backend backend_;
    std::unique_ptr<Gpu> gpu_;
};

// Of one GPU, each made at its first call. Calls are serialised by the device.
struct LibraryHandles {
    std::unique_ptr<CublasLt> products;
    std::unique_ptr<Cudnn> convolutions;
};

// What a convolution reads and writes.
std::vector<LibraryMemory> memory_of(const ConvShape& shape, const ConvData& data) {
    const auto part = [](const void* begin, const ConvSizes& t, bool writes) {
        const std::int64_t count = t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3];
        return LibraryMemory{begin, count * std::int64_t{sizeof(float)}, writes};
    };
    std::vector<LibraryMemory> memory = {
        part(data.image, shape.image, shape.kind == ConvCall::Kind::image_gradient),
        part(data.filters, shape.filters, shape.kind == ConvCall::Kind::filter_gradient),
        part(data.output, shape.output, shape.kind == ConvCall::Kind::forward)};
    if (shape.bias) memory.push_back({data.bias, shape.output.shape[1] * std::int64_t{sizeof(float)}, false});
    return memory;
}

template <class Table>
std::string by_library(const char* what, const char* name, const Loaded<Table>& library) {
    return library.present ? fmt::format("{} by {}", what, name)
                           : fmt::format("{} generated, because {}", what, library.problem);
}

}  // namespace

Backend cuda::cuda_backend(int index) {
    Backend backend;
    backend.index = index;
    const RuntimeTable& runtime = runtime_library().table;
    backend.runtime = &runtime;
    const Loaded<GraphTable>& graphs = graph_library();
    const Loaded<LoopTable>& loops = loop_library();
    if (graphs.present) backend.graphs = &graphs.table;
    if (loops.present) backend.loops = &loops.table;
    backend.began_in_parent = began_in_parent;
    backend.why_no_graphs = graphs.problem;
    backend.why_no_loops = loops.problem;
    backend.has_gemm = [] { return cublaslt_library().present; };
    const auto targets = std::make_shared<Targets>(known_architectures, [&runtime] {
        int driver = 0;
        runtime.cudaDriverGetVersion(&driver);
        return fmt::format("NVRTC {}, and a driver for CUDA {}.{}", nvrtc_identity().version, driver / 1000,
                           driver % 1000 / 10);
    });
    backend.targets = targets;
    backend.compile = [targets](const Program& program, const std::vector<CudaUnit>& units) {
        Images images;
        images.target = targets->current(program.target);
        CompiledUnits compiled = find_or_compile(units, images.target, program.name);
        images.compiler_runs = compiled.compiler_runs;
        for (CompiledModule& module : compiled.modules) {
            images.list.push_back(std::move(module.image));
            images.resources.insert(images.resources.end(), module.resources.begin(), module.resources.end());
        }
        return images;
    };
    const auto handles = std::make_shared<LibraryHandles>();
    const std::shared_ptr<MemoryLedger> ledger = backend.ledger;
    backend.gemm = [&runtime, handles, ledger](const GemmShape& shape, const float* a, const float* b,
                                               const float* bias, float* c, Stream stream) {
        if (!handles->products)
            handles->products = std::make_unique<CublasLt>(cublaslt_library().table, runtime, *ledger);
        handles->products->multiply(shape, a, b, bias, c, stream);
    };
    backend.gemm_algorithm = [handles](const GemmShape& shape) {
        return handles->products ? handles->products->choice(shape) : "";
    };
    backend.has_conv = [] { return cudnn_library().present && options().enabled("cudnn"); };
    backend.conv = [&runtime, handles, ledger, index](const ConvShape& shape, const ConvData& data,
                                                      Stream stream) {
        if (!handles->convolutions)
            handles->convolutions = std::make_unique<Cudnn>(
                cudnn_library().table, runtime, *ledger,
                EngineCache(engine_identity(cudnn_library().table, runtime, index)), [] { nvrtc_library(); });
        handles->convolutions->convolve(shape, data, stream);
    };
    backend.conv_algorithm = [handles](const ConvShape& shape) {
        return handles->convolutions ? handles->convolutions->choice(shape) : "";
    };
    backend.has_multiplied = [handles] { return handles->products != nullptr; };
    backend.conv_workspace = [handles](const ConvShape& shape) {
        return handles->convolutions ? handles->convolutions->workspace_of(shape) : -1;
    };
    backend.summary = [&runtime, index] {
        const auto properties = std::make_unique<DeviceProperties>();
        int processors = 0;
        if (runtime.cudaGetDeviceProperties(properties.get(), index) != success) return std::string("a GPU");
        runtime.cudaDeviceGetAttribute(&processors, multiprocessors, index);
        const std::string problem = nvrtc_problem();
        return fmt::format("{}, {} multiprocessors, {}, {}, {}", properties->name, processors,
                           problem.empty()
                               ? "kernels by NVRTC " + nvrtc_version()
                               : "kernels of the cache alone, because there is no NVRTC (" + problem + ")",
                           by_library("matrix products", "cuBLASLt", cublaslt_library()),
                           options().enabled("cudnn") ? by_library("convolutions", "cuDNN", cudnn_library())
                                                      : "convolutions generated (disable=cudnn)");
    };
    return backend;
}

std::unique_ptr<Device> make_cuda_device(int index) {
    return std::make_unique<CudaDevice>(DeviceName{false, index, ""}.text(), cuda_backend(index));
}

Backend cuda::emulator_backend(int index) {
    Backend backend;
    backend.index = index;
    backend.runtime = &emulated_runtime();
    backend.graphs = &emulated_graphs();
    backend.loops = &emulated_loops();
    backend.began_in_parent = emulator_began_in_parent;
    backend.has_gemm = [] { return options().enabled("onednn"); };
    backend.compile = [](const Program& /*program*/, const std::vector<CudaUnit>& units) {
        std::vector<std::string> texts;
        for (const CudaUnit& unit : units) texts.push_back(unit.text);
        EmulatedModules modules = compile_emulated(texts);
        return Images{std::move(modules.images), modules.compiler_runs};
    };
    backend.gemm = [](const GemmShape& shape, const float* a, const float* b, const float* bias, float* c,
                      Stream stream) {
        const auto floats = [](std::int64_t count) { return count * std::int64_t{sizeof(float)}; };
        std::vector<LibraryMemory> memory = {{a, floats(shape.m * shape.k)},
                                             {b, floats(shape.k * shape.n)},
                                             {c, floats(shape.m * shape.n), true}};
        if (shape.bias) memory.push_back({bias, floats(shape.n)});
        submit_library_call(stream, std::move(memory), [=] {
            GemmScratch scratch;
            gemm(process_pool(options().threads), shape, {a, b, bias, c}, scratch);
        });
    };
    backend.has_conv = [] { return options().enabled("cudnn"); };
    backend.conv = [](const ConvShape& shape, const ConvData& data, Stream stream) {
        submit_library_call(stream, memory_of(shape, data),
                            [=] { convolve(process_pool(options().threads), shape, data); });
    };
    backend.separate_buffers = emulator_checks;
    backend.counts = emulated_counts;
    backend.summary = [] {
        const CompilerSearch search = find_compiler();
        if (!search.found) return "cannot compile: " + search.problem;
        return fmt::format("runs the kernels of a GPU on the CPU, slowly; compiles with {}, {}, {}",
                           search.found->command[0],
                           !options().enabled("onednn") ? "matrix products generated"
                           : gemm_library().present     ? "matrix products by oneDNN"
                                                        : "matrix products by a routine of Bitale",
                           options().enabled("cudnn") ? "large convolutions by plain loops"
                                                      : "convolutions generated (disable=cudnn)");
    };
    return backend;
}

std::unique_ptr<Device> make_emulator_device(int index) {
    return std::make_unique<CudaDevice>(DeviceName{true, index, ""}.text(), emulator_backend(index));
}

}  // namespace bitale
