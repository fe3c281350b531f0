// cuBLASLt sees matrices by columns: a row-major matrix is its transpose there, so it is asked for c^T = b^T
// a^T.
#include "runtime/cuda/cublaslt.h"

#include <fmt/format.h>

#include "bitale/error.h"
#include "graph/base/check.h"
#include "runtime/cuda/library_memory.h"
#include "runtime/cuda/outside.h"

namespace bitale::cuda {

namespace {

void require(const CublasLtTable& library, int status, const char* what) {
    if (status != 0)
        throw DeviceError(fmt::format("{} fails: {}", what, library.cublasLtGetStatusString(status)));
}

void set_bias(const CublasLtTable& library, LtProduct* product, const float* bias) {
    require(library, library.cublasLtMatmulDescSetAttribute(product, lt_bias_pointer, &bias, sizeof bias),
            "cublasLtMatmulDescSetAttribute");
}

// Of buffers in the arena; a plan would expect 256 bytes.
constexpr std::uint32_t arena_alignment = 64;

}  // namespace

LtDescription describe_product(const CublasLtTable& library, const GemmShape& shape, const float* bias) {
    LtDescription p;
    const LtNumber compute = shape.precision == Precision::tf32   ? lt_compute_tf32
                             : shape.precision == Precision::bf16 ? lt_compute_bf16
                                                                  : lt_compute_float32;
    require(library, library.cublasLtMatmulDescCreate(&p.product, compute, lt_float32),
            "cublasLtMatmulDescCreate");
    if (shape.bias || shape.relu) {
        // The bias goes along the rows of what is a column-major matrix here: along our columns.
        const std::int32_t epilogue = !shape.bias   ? lt_epilogue_relu
                                      : !shape.relu ? lt_epilogue_bias
                                                    : lt_epilogue_bias_relu;
        require(library,
                library.cublasLtMatmulDescSetAttribute(p.product, lt_epilogue, &epilogue, sizeof epilogue),
                "cublasLtMatmulDescSetAttribute");
    }
    if (shape.bias) set_bias(library, p.product, bias);
    const std::int32_t first = shape.transpose_b ? lt_transposed : lt_plain,
                       second = shape.transpose_a ? lt_transposed : lt_plain;
    require(library, library.cublasLtMatmulDescSetAttribute(p.product, lt_transpose_a, &first, sizeof first),
            "cublasLtMatmulDescSetAttribute");
    require(library,
            library.cublasLtMatmulDescSetAttribute(p.product, lt_transpose_b, &second, sizeof second),
            "cublasLtMatmulDescSetAttribute");
    // The rows of a stored matrix are columns here.
    const auto layout = [&](LtLayout*& to, std::int64_t stored_rows, std::int64_t stored_columns) {
        require(
            library,
            library.cublasLtMatrixLayoutCreate(&to, lt_float32, static_cast<std::uint64_t>(stored_columns),
                                               static_cast<std::uint64_t>(stored_rows), stored_columns),
            "cublasLtMatrixLayoutCreate");
    };
    layout(p.a, shape.transpose_a ? shape.k : shape.m, shape.transpose_a ? shape.m : shape.k);
    layout(p.b, shape.transpose_b ? shape.n : shape.k, shape.transpose_b ? shape.k : shape.n);
    layout(p.c, shape.m, shape.n);
    return p;
}

CublasLt::CublasLt(const CublasLtTable& library, const RuntimeTable& runtime, MemoryLedger& ledger)
    : library_(library), runtime_(runtime) {
    // First what may be asked for again: nothing is left behind then.
    workspace_ = library_workspace(runtime, ledger, workspace_bytes, "cuBLASLt");
    try {
        start();
    } catch (...) {
        if (preference_) library_.cublasLtMatmulPreferenceDestroy(preference_);
        if (handle_) library_.cublasLtDestroy(handle_);
        runtime.cudaFree(workspace_);
        ledger.give(workspace_bytes);
        throw;
    }
}

void CublasLt::start() {
    require(library_.cublasLtCreate(&handle_), "cublasLtCreate");
    require(library_.cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate");
    const std::uint64_t limit = workspace_bytes;
    require(
        library_.cublasLtMatmulPreferenceSetAttribute(preference_, lt_workspace_limit, &limit, sizeof limit),
        "cublasLtMatmulPreferenceSetAttribute");
    for (const LtNumber operand : {lt_alignment_a, lt_alignment_b, lt_alignment_c, lt_alignment_d})
        require(library_.cublasLtMatmulPreferenceSetAttribute(preference_, operand, &arena_alignment,
                                                              sizeof arena_alignment),
                "cublasLtMatmulPreferenceSetAttribute");
}

void CublasLt::require(int status, const char* what) const { cuda::require(library_, status, what); }

std::vector<LtPlan> CublasLt::proposals(const GemmShape& shape, const float* bias, int most) {
    const LtDescription d = describe_product(library_, shape, bias);
    std::vector<LtChoice> choices(static_cast<std::size_t>(most));
    int found = 0;
    require(library_.cublasLtMatmulAlgoGetHeuristic(handle_, d.product, d.b, d.a, d.c, d.c, preference_, most,
                                                    choices.data(), &found),
            "cublasLtMatmulAlgoGetHeuristic");
    std::vector<LtPlan> plans;
    for (const LtChoice& c : choices)
        if (found-- > 0 && c.status == 0) plans.push_back({d, c.algorithm, c.workspace});
    return plans;
}

const LtPlan& CublasLt::plan_of(const GemmShape& shape, const float* bias) {
    for (const auto& [known, plan] : plans_)
        if (known == shape) return plan;
    const std::vector<LtPlan> plans = proposals(shape, bias, 1);
    if (plans.empty())
        throw DeviceError(fmt::format("cuBLASLt has no algorithm for a product [{}, {}] . [{}, {}]", shape.m,
                                      shape.k, shape.k, shape.n));
    return plans_.emplace_back(shape, plans.front()).second;
}

std::string CublasLt::choice(const GemmShape& shape) const {
    for (const auto& [known, plan] : plans_)
        if (known == shape) return "cuBLASLt's " + text_of(plan);
    return "";
}

std::string CublasLt::text_of(const LtPlan& plan) const {
    std::string text = "algorithm";
    const auto add = [&](LtNumber attribute, const char* name) {
        std::int32_t value = 0;
        std::size_t written = 0;
        if (library_.cublasLtMatmulAlgoConfigGetAttribute(&plan.algorithm, attribute, &value, sizeof value,
                                                          &written) == 0)
            text += fmt::format("{} {}", name, value);
    };
    add(lt_algorithm_id, "");
    add(lt_algorithm_tile, ", tile");
    add(lt_algorithm_stages, ", stages");
    add(lt_algorithm_split, ", split-K");
    return text + fmt::format(", {:.1f} MB of workspace", static_cast<double>(plan.workspace) / 1e6);
}

void CublasLt::multiply(const GemmShape& shape, const float* a, const float* b, const float* bias, float* c,
                        Stream stream) {
    if (shape.m == 0 || shape.n == 0) return;
    if (shape.k == 0) {
        BITALE_CHECK(!shape.bias && !shape.relu, "a bias is added by a product that may be over no elements");
        const auto bytes = static_cast<std::size_t>(shape.m * shape.n) * sizeof(float);
        if (runtime_.cudaMemsetAsync(c, 0, bytes, stream) != success)
            throw DeviceError("cudaMemsetAsync fails");
        return;
    }
    multiply_with(plan_of(shape, bias), shape, a, b, bias, c, stream);
}

void CublasLt::multiply_with(const LtPlan& plan, const GemmShape& shape, const float* a, const float* b,
                             const float* bias, float* c, Stream stream) {
    const LtDescription& d = plan.description;
    if (shape.bias) set_bias(library_, d.product, bias);
    const float one = 1, zero = 0;
    if (outside::refused(outside::Door::library)) throw DeviceError("cublasLtMatmul fails: refused");
    require(library_.cublasLtMatmul(handle_, d.product, &one, b, d.b, a, d.a, &zero, c, d.c, c, d.c,
                                    &plan.algorithm, workspace_, workspace_bytes, stream),
            "cublasLtMatmul");
}

}  // namespace bitale::cuda
