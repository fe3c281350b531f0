#include "runtime/cuda/offline_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "bitale/error.h"
#include "graph/base/check.h"
#include "graph/base/options.h"
#include "runtime/cuda/cubins.h"
#include "runtime/cuda/device_name.h"
#include "runtime/cuda/library_memory.h"
#include "runtime/cuda/offline_plans.h"
#include "runtime/cuda/target.h"
#include "runtime/cuda/transfers.h"
#include "runtime/exec/frame.h"

namespace bitale {

namespace {

using namespace cuda;  // NOLINT

// What NVRTC is asked for. Throws CompileError where it cannot compile for such a GPU, or is not here.
std::string offline_target(const std::string& architecture, const std::string& device) {
    std::vector<int> known;
    try {
        known = nvrtc_identity().architectures;
    } catch (const CompileError& e) {
        throw CompileError(
            fmt::format("device {}: {}; install NVRTC, or name its folder by cuda_home in BITALE_FLAGS",
                        device, e.what()));
    }
    const int wanted = std::stoi(architecture.substr(3));
    if (!known.empty() && wanted < known.back() &&
        std::find(known.begin(), known.end(), wanted) == known.end())
        throw CompileError(fmt::format("device {}: NVRTC does not compile for {}, but for sm_{}", device,
                                       architecture, fmt::join(known, ", sm_")));
    return machine_target(architecture);
}

// The sizes of the first call, where the arguments' lengths are known: scalars, as the number of a minibatch,
// are taken for 0. Nothing where a length is not.
std::optional<Frame> first_frame(const Build& build, Frames& frames) {
    for (const SizeSource& source : build.signature.sources)
        if (source.axis >= 0) return std::nullopt;
    const std::vector<std::int64_t> zeros(std::max<std::size_t>(build.signature.sources.size(), 1), 0);
    try {
        return frames.find(zeros.data());
    } catch (const ShapeError&) {
        return std::nullopt;  // as a call with 0 would say
    }
}

class OfflineExecutable : public Executable {
  public:
    OfflineExecutable(const Build& build, Device& device, const std::string& architecture)
        : program_(build.program), device_(device), architecture_(architecture) {
        if (const std::vector<CudaUnit> units = cuda_units(*program_); !units.empty())
            compile(units, architecture);
        Frames frames(program_, build.signature);
        const std::optional<Frame> frame = first_frame(build, frames);
        arena_bytes_ = frames.most_bytes();
        plan(program_->once, frame ? &frame->once : nullptr, architecture);
        plan(program_->body, frame ? &frame->body : nullptr, architecture);
    }

    std::vector<Array> run(std::span<const Array> /*arguments*/) override { refuse(); }
    std::vector<Array> loop(const LoopCall& /*call*/) override { refuse(); }
    std::int64_t arena_bytes() const override { return arena_bytes_; }
    OwnMemory own_memory(const Program& program, const Frame& frame, const Frame* /*before*/) const override {
        OwnMemory own = library_memory(program, true);
        std::int64_t largest = 0;
        std::string unknown;
        const auto add = [&](const Region& region, const std::vector<StepSizes>& sizes) {
            for (std::size_t i = 0; i < region.steps.size(); ++i) {
                if (!std::holds_alternative<ConvStep>(region.steps[i].operation)) continue;
                std::int64_t bytes = -1;
                const std::string plan = offline_plan(sizes[i].conv, architecture_, &bytes);
                largest = std::max(largest, bytes);
                if (bytes < 0) unknown = plan;
            }
        };
        add(program.once, frame.once);
        add(program.body, frame.body);
        if (largest > 0)
            own.pieces.push_back({MemoryPlan::Kind::workspace, "cuDNN",
                                  "workspace of the library of convolutions, one for the device", largest});
        if (!unknown.empty()) own.notes.push_back("workspace of cuDNN: " + unknown);
        own.pieces.push_back({MemoryPlan::Kind::staging, "transfers",
                              "pinned memory between the host and the GPU, one for the device",
                              Transfers::pinned_bytes, true});
        return own;
    }
    int compiler_runs() const override { return compiler_runs_; }
    std::string resources(const std::string& entry) const override {
        const auto at = resources_.find(entry);
        return at == resources_.end() ? "" : at->second;
    }
    std::string library_choice(const Step& step) const override {
        const auto at = plans_.find(&step);
        return at == plans_.end() ? "" : at->second;
    }
    std::string launches() const override { return "none, this device compiles and reports" + as_ptx_; }

  private:
    [[noreturn]] void refuse() const {
        device_.check_runs(program_->name, {});
        throw InternalError("a function ran on device " + device_.name());
    }

    void compile(const std::vector<CudaUnit>& units, const std::string& architecture) {
        const std::string target = offline_target(architecture, device_.name());
        const CompiledUnits compiled = find_or_compile(units, target, program_->name);
        compiler_runs_ = compiled.compiler_runs;
        for (const CompiledModule& module : compiled.modules)
            for (const KernelResources& r : module.resources)
                resources_.emplace(r.entry, bitale::cuda::text_of(r));
        if (target != architecture)
            as_ptx_ =
                fmt::format("; NVRTC does not know {}, so kernels are PTX for {}", architecture, target);
    }

    void plan(const Region& region, const std::vector<StepSizes>* sizes, const std::string& architecture) {
        for (std::size_t i = 0; i < region.steps.size(); ++i) {
            const Step& step = region.steps[i];
            const bool product = std::holds_alternative<GemmStep>(step.operation);
            if (!product && !std::holds_alternative<ConvStep>(step.operation)) continue;
            plans_[&step] = !sizes    ? "not planned here: its lengths are known at a call"
                            : product ? offline_plan((*sizes)[i].gemm)
                                      : offline_plan((*sizes)[i].conv, architecture);
        }
    }

    const std::shared_ptr<const Program> program_;
    Device& device_;
    const std::string architecture_;
    int compiler_runs_ = 0;
    std::int64_t arena_bytes_ = 0;
    std::string as_ptx_;
    std::map<std::string, std::string> resources_;
    std::map<const Step*, std::string> plans_;
};

class OfflineDevice : public Device {
  public:
    explicit OfflineDevice(const std::string& architecture)
        : Device(DeviceName{false, 0, architecture}.text(), Calls::in_turns), architecture_(architecture) {}

    // With both libraries, as on a GPU that is set up: what is decided here holds there.
    std::optional<Target> target() override {
        Target t = target_of(architecture_);
        t.has_conv = options().enabled("cudnn");
        return t;
    }
    std::unique_ptr<Executable> prepare(Build build) override {
        return std::make_unique<OfflineExecutable>(build, *this, architecture_);
    }
    Timing timing() override { return {"", "device " + name() + " runs nothing"}; }
    std::string summary() override { return "compiles and reports for a GPU that need not be there"; }
    bool runs() const override { return false; }
    void check_runs(const std::string& function, Where of_function) const override {
        throw DeviceError(
            of_function,
            fmt::format(
                "function \"{0}\" is for device {1}, which compiles and reports; it cannot run. Build "
                "it with device \"cuda\" where there is a GPU, or \"emulator\" to run its kernels on "
                "the CPU",
                function, name()));
    }

  private:
    const std::string architecture_;
};

}  // namespace

std::unique_ptr<Device> make_offline_device(const std::string& architecture) {
    return std::make_unique<OfflineDevice>(architecture);
}

}  // namespace bitale
