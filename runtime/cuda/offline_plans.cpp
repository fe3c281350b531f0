#include "runtime/cuda/offline_plans.h"

#include <fmt/format.h>

#include <cstddef>

#include "bitale/error.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/cudnn.h"
#include "runtime/cuda/cudnn_graph.h"
#include "runtime/cuda/gpu_models.h"
#include "runtime/cuda/libraries.h"

namespace bitale::cuda {

namespace {

std::string version_text(std::size_t version) {
    return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace

std::string why_no_plans_without_gpu() {
    constexpr std::size_t first_with_descriptions = 90800;
    const Loaded<CudnnTable>& library = cudnn_library();
    if (!library.present) return "no cuDNN (" + library.problem + ")";
    const std::size_t version = library.table.cudnnGetVersion();
    if (version >= first_with_descriptions) return "";
    return fmt::format("cuDNN {} plans only for a GPU that is there, 9.8.0 and newer do without",
                       version_text(version));
}

std::string offline_plan(const ConvShape& shape, const std::string& architecture, std::int64_t* workspace) {
    if (const std::string why = why_no_plans_without_gpu(); !why.empty()) return "not planned here: " + why;
    const GpuModel* const model = model_for(architecture);
    if (!model)
        return fmt::format("not planned here: no GPU as old as {} is described, the oldest is {} (sm_{})",
                           architecture, gpu_models().front().name, gpu_models().front().architecture);
    std::string gpu = fmt::format("{} (sm_{})", model->name, model->architecture);
    if (architecture != fmt::format("sm_{}", model->architecture))
        gpu += ", the newest that is described and not newer than " + architecture;
    const std::string library = "cuDNN " + version_text(cudnn_library().table.cudnnGetVersion());
    try {
        const ConvPlan plan = plan_convolution(
            cudnn_library().table, shape, {nullptr, description_for_cudnn(*model)}, Cudnn::most_workspace);
        if (workspace) *workspace = plan.workspace;
        return fmt::format("{} plans {}, for {}; on a GPU it may prefer one that it compiles there", library,
                           text_of(plan), gpu);
    } catch (const DeviceError& e) {
        return fmt::format("no plan of {} without a GPU, for {}: {}", library, gpu, e.what());
    }
}

std::string offline_plan(const GemmShape& shape) {
    constexpr const char* on_a_gpu = "its algorithm and workspace are chosen on a GPU";
    const Loaded<CublasLtTable>& library = cublaslt_library();
    if (!library.present)
        return fmt::format("not checked here: no cuBLASLt ({}); {}", library.problem, on_a_gpu);
    const std::string name = "cuBLASLt " + version_text(library.table.cublasLtGetVersion());
    try {
        const float bias = 0;
        const LtDescription d = describe_product(library.table, shape, &bias);
        for (LtLayout* layout : {d.a, d.b, d.c}) library.table.cublasLtMatrixLayoutDestroy(layout);
        library.table.cublasLtMatmulDescDestroy(d.product);
        return fmt::format("{} takes the description; {}", name, on_a_gpu);
    } catch (const DeviceError& e) {
        return fmt::format("{} refuses the description: {}", name, e.what());
    }
}

}  // namespace bitale::cuda
