// Target, preparation and launching of the CPU device.
#include "runtime/cpu/cpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "graph/base/check.h"
#include "graph/base/log.h"
#include "graph/base/options.h"
#include "runtime/cpu/compiler.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/eigh.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/gemm.h"
#include "runtime/cpu/objects.h"
#include "runtime/cpu/pool.h"
#include "runtime/cpu/roof.h"
#include "runtime/exec/region_runner.h"
#include "runtime/reference/reference_device.h"

namespace bitale {

namespace {

class CpuLauncher : public Launcher {
  public:
    CpuLauncher(std::shared_ptr<const LoadedKernels> kernels, Pool& pool)
        : kernels_(std::move(kernels)), entries_(kernels_->entries), pool_(pool) {
        scratch_.is_limited = true;
    }

    void kernel(int kernel, int phase, void* const* buffers, const std::int64_t* sizes, std::int64_t tasks,
                const Shares* shares) override {
        const KernelEntry entry = entries_[static_cast<std::size_t>(kernel)][static_cast<std::size_t>(phase)];
        const auto part = [=](std::int64_t first, std::int64_t last) { entry(buffers, sizes, first, last); };
        if (!shares)
            pool_.run(tasks, part);
        else if (shares->ranges.empty())
            part(0, tasks);
        else
            pool_.run(*shares, part);
    }
    int threads() const override { return pool_.threads(); }

    void reserve(const GemmShape& shape, bool stored, std::size_t buffers) override {
        reserve_gemm(pool_, shape, stored, buffers, scratch_);
    }
    std::int64_t reserved_bytes(std::span<const Reserved> calls) const override {
        GemmRoom most;
        for (const Reserved& call : calls) {
            const GemmRoom room = gemm_room(*call.shape, call.stored, call.buffers);
            most.of_thread = std::max(most.of_thread, room.of_thread);
            most.of_parts = std::max(most.of_parts, room.of_parts);
        }
        return scratch_bytes(most, pool_.threads());
    }
    std::int64_t reserved_alive() const override { return scratch_.bytes(); }
    void drop_reserved() override { scratch_.drop(); }
    void gemm(const GemmShape& shape, const GemmData& data, const SliceKernels& kernels) override {
        const auto loaded = [&](const SliceKernel& k) {
            const KernelEntry entry =
                k.kernel < 0 ? nullptr : entries_[static_cast<std::size_t>(k.kernel)][0];
            return GemmKernel{entry, k.buffers, k.count, k.sizes};
        };
        bitale::gemm(pool_, shape, data, scratch_,
                     {loaded(kernels.epilogue), loaded(kernels.a), loaded(kernels.b)});
    }
    void conv(const ConvShape& shape, const ConvData& data) override { convolve(pool_, shape, data); }

    bool routine(const RoutineShape& shape, void* const* buffers) override {
        BITALE_CHECK(shape.name == "eigh", "the device cpu has no routine " + shape.name);
        return eigh(pool_, shape, buffers[0], buffers[1], buffers[2]);
    }

    void copy(void* to, const void* from, std::int64_t bytes) override {
        constexpr std::int64_t piece = std::int64_t{512} << 10;
        if (bytes == 0 || to == from) return;
        pool_.run((bytes + piece - 1) / piece, [=](std::int64_t first, std::int64_t last) {
            const std::int64_t begin = first * piece, end = std::min(last * piece, bytes);
            std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                        static_cast<std::size_t>(end - begin));
        });
    }

  private:
    std::shared_ptr<const LoadedKernels> kernels_;
    const std::vector<std::vector<KernelEntry>>& entries_;
    Pool& pool_;
    GemmScratch scratch_;
};

class CpuDevice : public Device {
  public:
    CpuDevice() : Device("cpu", Calls::at_once) {}

    std::optional<Target> target() override {
        if (!usable_compiler()) return std::nullopt;
        const CpuFeatures& cpu = target_features();
        Target t;
        t.kind = Target::Kind::cpu;
        t.architecture = cpu.architecture;
        t.vector_bytes = cpu.vector_bytes;
        t.vector_registers = cpu.vector_registers;
        t.has_gemm = t.has_gemm_f64 = options().enabled("onednn");
        t.has_gemm_int8 = t.has_gemm && gemm_library().multiplies_bytes;
        t.local_bytes = std::int64_t{512} << 10;
        t.fast_compile = options().mode == Options::Mode::fast_compile;
        t.smallest_tasks = options().smallest_tasks;
        t.checked_loops = options().checked_loops;
        t.reads_exactly = std::string(BITALE_SANITIZE) == "thread";
        return t;
    }

    void find_routines(Target& t) override {
        t.has_lapack = options().enabled("lapack") && lapack_library().present;
    }

    std::unique_ptr<Executable> prepare(Build build) override {
        if (!build.program) return interpret(std::move(build));
        const std::optional<HostCompiler> compiler = usable_compiler();
        if (!compiler) throw CompileError("the host compiler disappeared: " + find_compiler().problem);
        Pool& pool = process_pool(build.threads > 0 ? build.threads : options().threads);
        const auto kernels = std::make_shared<const LoadedKernels>(
            load_kernels(*build.program, *compiler, pool.threads(), build.where));
        return std::make_unique<RegionRunner>(
            std::move(build), [kernels, &pool] { return std::make_unique<CpuLauncher>(kernels, pool); },
            kernels->compiler_runs);
    }

    std::optional<Roof> roof() override { return measured_roof(process_pool(options().threads).threads()); }

    Timing timing() override {
        const CompilerSearch search = find_compiler();
        if (!search.found) return {"", "functions are interpreted, because " + search.problem};
        const CpuFeatures& cpu = target_features();
        return {fmt::format("{}\n{}: {}\n{}\n{}\n{}\n{}", cpu_features().model, cpu.architecture,
                            fmt::join(cpu.names, " "), search.found->identity,
                            fmt::join(compile_flags(), " "), gemm_library().name,
                            options().mode == Options::Mode::fast_compile ? "fast_compile" : "fast_run"),
                ""};
    }

    std::string summary() override {
        const CpuFeatures& cpu = target_features();
        const CompilerSearch search = find_compiler();
        return fmt::format("{} ({}), {} threads, {}", cpu.model, cpu.architecture,
                           process_pool(options().threads).threads(),
                           search.found ? "compiles with " + search.found->command[0]
                                        : "interprets, because " + search.problem);
    }

  private:
    // Nothing, with a warning, where functions have to be interpreted.
    static std::optional<HostCompiler> usable_compiler() {
        CompilerSearch search = find_compiler();
        if (search.found) return search.found;
        if (!options().interpret)
            throw CompileError("device cpu: no host compiler (" + search.problem +
                               "), and interpret=off in BITALE_FLAGS");
        warn("device cpu: no host compiler (" + search.problem +
             "); functions are interpreted, which is correct and very slow");
        return std::nullopt;
    }
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }

}  // namespace bitale
