// Matrix products by cuBLASLt.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/memory.h"
#include "runtime/cuda/tables.h"
#include "runtime/exec/launcher.h"

namespace bitale::cuda {

// What cuBLASLt is told of a product. Needs no GPU; throws DeviceError when the library refuses.
struct LtDescription {
    LtProduct* product = nullptr;
    LtLayout *a = nullptr, *b = nullptr, *c = nullptr;
};
LtDescription describe_product(const CublasLtTable& library, const GemmShape& shape, const float* bias);

// An algorithm for a product, as the heuristics propose it.
struct LtPlan {
    LtDescription description;
    LtAlgorithm algorithm{};
    std::size_t workspace = 0;
};

// Products of one GPU, that of the thread that makes it; the algorithm for each shape is chosen once. Calls
// are serialised by the device. What it holds of the GPU is never given back: CUDA may be gone before us.
class CublasLt {
  public:
    // Throws DeviceError when the library does not start, OutOfMemory without room for its workspace.
    CublasLt(const CublasLtTable& library, const RuntimeTable& runtime, MemoryLedger& ledger);
    CublasLt(const CublasLt&) = delete;
    CublasLt& operator=(const CublasLt&) = delete;

    // c[m, n] = a[m, k] . b[k, n], row-major; a transposed operand is stored [k, m] resp. [n, k]; then bias
    // and relu. The first call for a shape asks the heuristics: it must not be captured into a graph.
    void multiply(const GemmShape& shape, const float* a, const float* b, const float* bias, float* c,
                  Stream stream);

    // What computes this shape, for the report; empty before the first call for it.
    std::string choice(const GemmShape& shape) const;

    // The first `most` algorithms of the heuristics, in their order; the first of them is what multiply()
    // takes. They share a description, which is never given back.
    std::vector<LtPlan> proposals(const GemmShape& shape, const float* bias, int most);
    void multiply_with(const LtPlan& plan, const GemmShape& shape, const float* a, const float* b,
                       const float* bias, float* c, Stream stream);
    std::string text_of(const LtPlan& plan) const;

    static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

  private:
    void start();
    void require(int status, const char* what) const;
    const LtPlan& plan_of(const GemmShape& shape, const float* bias);

    const CublasLtTable& library_;
    const RuntimeTable& runtime_;
    LtHandle* handle_ = nullptr;
    LtPreference* preference_ = nullptr;
    void* workspace_ = nullptr;
    std::vector<std::pair<GemmShape, LtPlan>> plans_;
};

}  // namespace bitale::cuda
