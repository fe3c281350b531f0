#include "runtime/cuda/cuda_device.h"

#include <fmt/format.h>

#include <mutex>

#include "graph/base/options.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/pool.h"
#include "runtime/cuda/cuda_runner.h"
#include "runtime/cuda/emulator/compile.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/cuda/target.h"

namespace bitale {

namespace {

using namespace cuda;  // NOLINT

class CudaDevice : public Device {
  public:
    CudaDevice(std::string name, Backend backend) : Device(std::move(name)), backend_(std::move(backend)) {}

    std::optional<Target> target() override {
        Target t = target_of("sm_" + architecture());
        t.has_gemm = backend_.has_gemm();
        return t;
    }

    std::unique_ptr<Executable> prepare(Build build) override {
        const std::lock_guard lock(mutex());
        return std::make_unique<CudaRunner>(std::move(build), context(), backend_);
    }

    std::string summary() override {
        const CompilerSearch search = find_compiler();
        return search.found
                   ? "runs the kernels of a GPU on the CPU, slowly; compiles with " + search.found->command[0]
                   : "cannot compile: " + search.problem;
    }

  private:
    // Made at the first use: nobody else pays for it.
    Context& context() {
        if (!context_) context_ = std::make_unique<Context>(*backend_.runtime, static_cast<Device*>(this));
        return *context_;
    }
    std::string architecture() const {
        int major = 0, minor = 0;
        backend_.runtime->cudaDeviceGetAttribute(&major, capability_major, 0);
        backend_.runtime->cudaDeviceGetAttribute(&minor, capability_minor, 0);
        return std::to_string(major * 10 + minor);
    }

    const Backend backend_;
    std::unique_ptr<Context> context_;
};

}  // namespace

std::unique_ptr<Device> make_emulator_device() {
    Backend backend;
    backend.runtime = &emulated_runtime();
    backend.has_gemm = [] { return gemm_library().present; };
    backend.compile = [](const Program& program, const std::vector<CudaUnit>& units) {
        EmulatedModules modules = compile_emulated(units, program);
        Images images;
        images.compiler_runs = modules.compiler_runs;
        for (const std::string& object : modules.images) images.list.push_back(emulated_image(object));
        return images;
    };
    backend.gemm = [](const GemmShape& shape, const float* a, const float* b, float* c, Stream) {
        gemm(process_pool(options().threads), shape, a, b, c);
    };
    return std::make_unique<CudaDevice>("emulator", std::move(backend));
}

}  // namespace bitale
