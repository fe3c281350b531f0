// libcublasLt, emulated: descriptors as lenient and as strict as the real ones when they are made, and every
// check that its documentation names when a product is planned and run. What a plan promises is required: a
// product runs only with the algorithm that the heuristics gave for it, with the alignment and the workspace
// that were agreed on.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "runtime/cuda/emulator/libraries/cublasLt_product.h"
#include "runtime/cuda/emulator/libraries/submit.h"
#include "runtime/cuda/tables.h"

namespace bitale::cuda {

struct LtHandle {
    std::uint64_t mark = 0;
};
struct LtProduct {
    std::int32_t compute = 0, scale = 0, pointer_mode = 0, transpose[3] = {}, fill = 2;
    std::uint32_t epilogue = 1;
    const void* bias = nullptr;
};
struct LtLayout {
    std::int32_t type = 0;
    std::uint64_t rows = 0, columns = 0;
    std::int64_t stride = 0;
};
struct LtPreference {
    std::uint32_t search = 0, reductions = 0x7;
    std::uint64_t workspace = 0, kinds = ~std::uint64_t{0};
    std::uint32_t alignment[4] = {256, 256, 256, 256};
    float waves = 0;
};

}  // namespace bitale::cuda

namespace {

using namespace bitale::cuda;
using bitale::emulated::Product;

enum : int { ok = 0, not_initialized = 1, invalid_value = 7, execution_failed = 13, not_supported = 15 };
constexpr std::uint64_t live_handle = 0xb17a1e5c0b1a5171;

bool is_handle(const LtHandle* handle) { return handle && handle->mark == live_handle; }

template <class T>
int store(T& to, const void* value, std::size_t bytes) {
    if (!value || bytes != sizeof to) return invalid_value;
    std::memcpy(&to, value, sizeof to);
    return ok;
}

constexpr int plain_compute = lt_compute_float32;
constexpr std::uint32_t no_epilogue = 1;

// What the heuristics hand out; cublasLtMatmulAlgo_t is opaque to callers, who keep its 64 bytes.
struct Algorithm {
    std::uint64_t mark, problem, workspace;
    std::uint32_t alignment[4], bias_alignment, reserved[5];
};
static_assert(sizeof(Algorithm) == sizeof(LtAlgorithm));
constexpr std::uint64_t live_algorithm = 0xb17a1ea190417481;

std::uint64_t mixed(std::uint64_t h, std::uint64_t value) {
    h ^= value + 0x9e3779b97f4a7c15 + (h << 6) + (h >> 2);
    return h * 0xff51afd7ed558ccd;
}

// The status of a description, and what it describes.
int describe(const LtProduct* p, const LtLayout* a, const LtLayout* b, const LtLayout* c, const LtLayout* d,
             Product& product, std::uint64_t& problem) {
    if (!p || !a || !b || !c || !d) return invalid_value;
    for (const LtLayout* l : {a, b, c, d}) {
        if (l->rows == 0 || l->columns == 0 || l->stride < 0 ||
            static_cast<std::uint64_t>(l->stride) < l->rows)
            return invalid_value;
        if (l->type != lt_float32) return not_supported;
    }
    for (const std::int32_t t : p->transpose)
        if (t != lt_plain && t != lt_transposed) return t == 2 ? not_supported : invalid_value;
    if (p->transpose[2] != lt_plain || p->fill != 2 || p->pointer_mode != 0) return not_supported;
    if (p->scale != lt_float32) return not_supported;
    if (p->compute != plain_compute && p->compute != lt_compute_tf32 && p->compute != lt_compute_bf16)
        return not_supported;
    if (p->epilogue != no_epilogue && p->epilogue != lt_epilogue_relu && p->epilogue != lt_epilogue_bias &&
        p->epilogue != lt_epilogue_bias_relu)
        return not_supported;
    const bool ta = p->transpose[0] == lt_transposed, tb = p->transpose[1] == lt_transposed;
    const std::uint64_t m = ta ? a->columns : a->rows, k = ta ? a->rows : a->columns,
                        n = tb ? b->rows : b->columns;
    if ((tb ? b->columns : b->rows) != k || d->rows != m || d->columns != n || c->rows != m ||
        c->columns != n)
        return invalid_value;
    product.m = static_cast<std::int64_t>(m);
    product.n = static_cast<std::int64_t>(n);
    product.k = static_cast<std::int64_t>(k);
    product.transpose_a = ta;
    product.transpose_b = tb;
    product.stride_a = a->stride;
    product.stride_b = b->stride;
    product.stride_c = c->stride;
    product.stride_d = d->stride;
    product.mantissa_bits = p->compute == lt_compute_tf32   ? bitale::emulated::tf32_mantissa_bits
                            : p->compute == lt_compute_bf16 ? bitale::emulated::bf16_mantissa_bits
                                                            : bitale::emulated::all_mantissa_bits;
    product.relu = p->epilogue == lt_epilogue_relu || p->epilogue == lt_epilogue_bias_relu;
    product.has_bias = p->epilogue == lt_epilogue_bias || p->epilogue == lt_epilogue_bias_relu;
    problem = 1;
    for (const std::uint64_t v :
         {m, n, k, std::uint64_t{ta}, std::uint64_t{tb}, static_cast<std::uint64_t>(a->stride),
          static_cast<std::uint64_t>(b->stride), static_cast<std::uint64_t>(c->stride),
          static_cast<std::uint64_t>(d->stride), static_cast<std::uint64_t>(p->compute),
          std::uint64_t{p->epilogue}})
        problem = mixed(problem, v);
    return ok;
}

bool aligned(const void* pointer, std::uint64_t bytes) {
    return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

constexpr std::uint64_t workspace_alignment = 16;

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// As if cuBLAS had the number of CUDA: 130100 for 13.1.
EXPORTED std::size_t cublasLtGetVersion() {
    return BITALE_EMULATED_CUDA / 1000 * 10000 + BITALE_EMULATED_CUDA % 1000 / 10 * 100;
}

EXPORTED const char* cublasLtGetStatusString(int status) {
    switch (status) {
        case ok: return "success";
        case not_initialized: return "the library was not initialized";
        case invalid_value: return "an unsupported value or parameter was passed to the function";
        case execution_failed: return "the function failed to launch on the GPU";
        case not_supported: return "the requested functionality is not supported";
        default: return "unrecognized status";
    }
}

EXPORTED int cublasLtCreate(LtHandle** handle) {
    if (!handle) return invalid_value;
    if (!bitale::emulated::submit_of_runtime()) return not_initialized;
    *handle = new LtHandle{live_handle};
    return ok;
}

EXPORTED int cublasLtDestroy(LtHandle* handle) {
    if (!is_handle(handle)) return invalid_value;
    handle->mark = 0;
    delete handle;
    return ok;
}

EXPORTED int cublasLtMatmulDescCreate(LtProduct** product, int compute, int scale) {
    if (!product) return invalid_value;
    *product = new LtProduct;
    (*product)->compute = compute;
    (*product)->scale = scale;
    return ok;
}

EXPORTED int cublasLtMatmulDescDestroy(LtProduct* product) {
    delete product;
    return ok;
}

EXPORTED int cublasLtMatmulDescSetAttribute(LtProduct* p, int attribute, const void* value,
                                            std::size_t bytes) {
    if (!p) return invalid_value;
    switch (attribute) {
        case 0: return store(p->compute, value, bytes);
        case 1: return store(p->scale, value, bytes);
        case 2: return store(p->pointer_mode, value, bytes);
        case lt_transpose_a: return store(p->transpose[0], value, bytes);
        case lt_transpose_b: return store(p->transpose[1], value, bytes);
        case 5: return store(p->transpose[2], value, bytes);
        case 6: return store(p->fill, value, bytes);
        case lt_epilogue: return store(p->epilogue, value, bytes);
        case lt_bias_pointer: return store(p->bias, value, bytes);
        default: return invalid_value;
    }
}

EXPORTED int cublasLtMatrixLayoutCreate(LtLayout** layout, int type, std::uint64_t rows,
                                        std::uint64_t columns, std::int64_t stride) {
    if (!layout) return invalid_value;
    *layout = new LtLayout{type, rows, columns, stride};
    return ok;
}

EXPORTED int cublasLtMatrixLayoutDestroy(LtLayout* layout) {
    delete layout;
    return ok;
}

EXPORTED int cublasLtMatmulPreferenceCreate(LtPreference** preference) {
    if (!preference) return invalid_value;
    *preference = new LtPreference;
    return ok;
}

EXPORTED int cublasLtMatmulPreferenceDestroy(LtPreference* preference) {
    delete preference;
    return ok;
}

EXPORTED int cublasLtMatmulPreferenceSetAttribute(LtPreference* p, int attribute, const void* value,
                                                  std::size_t bytes) {
    if (!p) return invalid_value;
    switch (attribute) {
        case 0: return store(p->search, value, bytes);
        case lt_workspace_limit: return store(p->workspace, value, bytes);
        case 3: return store(p->reductions, value, bytes);
        case lt_alignment_a:
        case lt_alignment_b:
        case lt_alignment_c:
        case lt_alignment_d: return store(p->alignment[attribute - lt_alignment_a], value, bytes);
        case 9: return store(p->waves, value, bytes);
        case 12: return store(p->kinds, value, bytes);
        default: return invalid_value;
    }
}

EXPORTED int cublasLtMatmulAlgoGetHeuristic(LtHandle* handle, LtProduct* p, LtLayout* a, LtLayout* b,
                                            LtLayout* c, LtLayout* d, LtPreference* preference, int wanted,
                                            LtChoice* choices, int* found) {
    if (!is_handle(handle)) return not_initialized;
    if (!preference || !choices || !found || wanted <= 0) return invalid_value;
    *found = 0;
    Product product;
    std::uint64_t problem = 0;
    if (const int status = describe(p, a, b, c, d, product, problem); status != ok) return status;
    for (const std::uint32_t alignment : preference->alignment)
        if (alignment == 0 || (alignment & (alignment - 1)) != 0) return invalid_value;
    Algorithm it{};
    it.mark = live_algorithm;
    it.problem = problem;
    // Whoever says that operands are aligned is taken at his word.
    std::copy_n(preference->alignment, 4, it.alignment);
    // That of the bias is read from the pointer that is set now; kernels load 16 bytes at most.
    const auto bias = reinterpret_cast<std::uintptr_t>(p->bias);
    it.bias_alignment = 4;
    while (it.bias_alignment < 16 && bias % (2 * it.bias_alignment) == 0) it.bias_alignment *= 2;
    // The first choice splits the sum into two parts where it may have memory for one of them, the second
    // needs none.
    const auto part = static_cast<std::uint64_t>(product.m * product.n) * sizeof(float);
    for (const std::uint64_t workspace : {product.k > 1 ? part : 0, std::uint64_t{0}}) {
        if (workspace > preference->workspace || *found == wanted) continue;
        if (*found > 0 && choices[*found - 1].workspace == workspace) continue;
        it.workspace = workspace;
        LtChoice& choice = choices[(*found)++] = LtChoice{};
        std::memcpy(choice.algorithm.data, &it, sizeof it);
        choice.workspace = workspace;
        choice.waves = 1;
    }
    return ok;
}

// CUBLASLT_ALGO_CONFIG_...: the number of the algorithm, its tile, the parts of its sums, its stages.
EXPORTED int cublasLtMatmulAlgoConfigGetAttribute(const LtAlgorithm* algorithm, int attribute, void* value,
                                                  std::size_t bytes, std::size_t* written) {
    if (!algorithm) return invalid_value;
    Algorithm it{};
    std::memcpy(&it, algorithm->data, sizeof it);
    const bool split = it.workspace > 0;
    std::int32_t number = 0;
    switch (attribute) {
        case 0: number = split ? 1 : 0; break;
        case 1: number = 20; break;
        case 2: number = split ? 2 : 1; break;
        case 6: number = 0; break;
        default: return invalid_value;
    }
    if (written) *written = sizeof number;
    if (bytes == 0) return written ? ok : invalid_value;
    if (it.mark != live_algorithm || !value || bytes != sizeof number) return invalid_value;
    std::memcpy(value, &number, sizeof number);
    return ok;
}

EXPORTED int cublasLtMatmul(LtHandle* handle, LtProduct* p, const void* alpha, const void* a,
                            LtLayout* layout_a, const void* b, LtLayout* layout_b, const void* beta,
                            const void* c, LtLayout* layout_c, void* d, LtLayout* layout_d,
                            const LtAlgorithm* algorithm, void* workspace, std::size_t bytes, Stream stream) {
    if (!is_handle(handle)) return not_initialized;
    Product product;
    std::uint64_t problem = 0;
    if (const int status = describe(p, layout_a, layout_b, layout_c, layout_d, product, problem);
        status != ok)
        return status;
    if (!alpha || !beta || !a || !b || !c || !d || !algorithm) return invalid_value;
    Algorithm it{};
    std::memcpy(&it, algorithm->data, sizeof it);
    if (it.mark != live_algorithm || it.problem != problem) return invalid_value;
    const void* const operands[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
        if (!aligned(operands[i], it.alignment[i])) return invalid_value;
    if (product.has_bias && (!p->bias || !aligned(p->bias, it.bias_alignment))) return invalid_value;
    if (it.workspace > 0 && (bytes < it.workspace || !workspace || !aligned(workspace, workspace_alignment)))
        return invalid_value;
    std::memcpy(&product.alpha, alpha, sizeof product.alpha);
    std::memcpy(&product.beta, beta, sizeof product.beta);
    product.a = static_cast<const float*>(a);
    product.b = static_cast<const float*>(b);
    product.c = static_cast<const float*>(c);
    product.d = static_cast<float*>(d);
    product.bias = product.has_bias ? static_cast<const float*>(p->bias) : nullptr;
    product.part = it.workspace > 0 ? static_cast<float*>(workspace) : nullptr;
    return bitale::emulated::submit(stream, [product] { multiply(product); }) ? ok : execution_failed;
}
