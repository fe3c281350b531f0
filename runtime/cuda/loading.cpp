#include "runtime/cuda/loading.h"

#include <fmt/format.h>

#include <utility>

namespace bitale::cuda {

namespace {

// The driver may put off a look at the code until somebody asks something of a kernel.
Status load_unit(const RuntimeTable& runtime, const std::string& image, const std::string& entry,
                 OwnedLibrary& library) {
    Status status =
        runtime.cudaLibraryLoadData(library.put(), image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
    KernelFunction kernel = nullptr;
    FunctionAttributes attributes;
    if (status == success) status = runtime.cudaLibraryGetKernel(&kernel, library.get(), entry.c_str());
    if (status == success) status = runtime.cudaFuncGetAttributes(&attributes, kernel);
    return status;
}

}  // namespace

LoadedUnits load_units(Context& context, const Program& program, const std::vector<CudaUnit>& units,
                       Turn* turn) {
    const RuntimeTable& runtime = context.runtime();
    int compiler_runs = 0;
    for (;;) {
        LoadedUnits loaded{without_turn(turn, [&] { return context.backend().compile(program, units); }), {}};
        loaded.images.compiler_runs += std::exchange(compiler_runs, 0);
        Status status = success;
        for (std::size_t u = 0; u < units.size() && status == success; ++u) {
            const auto kernel = static_cast<std::size_t>(units[u].kernels.at(0));
            status = load_unit(runtime, loaded.images.list.at(u), program.kernels[kernel].entries.at(0),
                               loaded.libraries.emplace_back(context));
        }
        if (status == success) return loaded;
        const std::string words =
            fmt::format("{}: {}", runtime.cudaGetErrorName(status), runtime.cudaGetErrorString(status));
        loaded.libraries.clear();
        Targets* targets = context.backend().targets.get();
        if (!targets || !is_refusal(status)) context.check(status, "loading kernels");
        targets->refuse(loaded.images.target, status, words);
        compiler_runs = loaded.images.compiler_runs;
    }
}

}  // namespace bitale::cuda
