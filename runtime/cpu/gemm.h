// Matrix products, slice by slice: a slice is computed by oneDNN or by a routine of our own, in one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cpu/objects.h"
#include "runtime/cpu/onednn.h"
#include "runtime/cpu/pool.h"
#include "runtime/exec/launcher.h"
#include "runtime/storage/arena.h"

namespace bitale {

// A generated kernel that runs on parts of a product.
struct GemmKernel {
    KernelEntry entry = nullptr;     // null: there is none
    void* const* buffers = nullptr;  // null pointers stand for the part, in memory of the thread
    std::size_t count = 0;
    const std::int64_t* sizes = nullptr;
};

// `epilogue` runs on each slice right after it, while it is in the cache: its tasks are the slices, its null
// pointers the slice where the product is kept nowhere. `a` and `b` make pieces of operands that are nowhere
// as a whole, right before the slice that needs them is computed.
struct GemmKernels {
    GemmKernel epilogue, a, b;
};

// That a product needs beside its operands, in bytes: of each thread, and of all together.
struct GemmRoom {
    std::int64_t of_thread = 0, of_parts = 0;
};

// Memory that products need while they run; grows, and is kept.
class GemmScratch {
  public:
    bool is_limited = false;  // by memory_limit of BITALE_FLAGS

    std::int64_t bytes() const;
    void drop();  // between products

  private:
    template <class T, class A, class B>
    friend class GemmProduct;
    class Claim;
    struct Block {
        Arena memory;
        std::vector<void*> buffers;
        std::atomic<bool> taken{false};
    };
    // Makes room; what it throws, it throws here and not in the midst of a product.
    void prepare(std::size_t threads, const GemmRoom& room, std::size_t buffers);

    std::vector<std::unique_ptr<Block>> blocks_;  // one for each thread
    Arena parts_;                                 // of the depth
};

// c[m, n] = a[m, k] . b[k, n], float32, float64, or int32 of bytes, row-major, no padding between rows; a
// transposed operand is stored [k, m] resp. [n, k]; c = alpha * a . b + beta * c where the shape says so,
// whose depth is one part; then the bias and relu that the shape asks for, and the kernels. Slices, of which
// each is a task, are those of codegen/library/slices.h; of those of a symmetric product that mirror each
// other one is computed. A slice that oneDNN refuses, for want of memory, is computed by plain loops: a
// product may follow steps that have written shared variables, so it does not fail.
void gemm(Pool& pool, const GemmShape& shape, const GemmData& data, GemmScratch& scratch,
          const GemmKernels& kernels = {});

GemmRoom gemm_room(const GemmShape& shape, bool stored, std::size_t buffers);
// That of a scratch which has served products that need so much at most.
std::int64_t scratch_bytes(const GemmRoom& most, int threads);

// Claims in `scratch` all that the product will need; `stored`: its result has a place; `buffers`: the most
// that one of its kernels has.
void reserve_gemm(Pool& pool, const GemmShape& shape, bool stored, std::size_t buffers, GemmScratch& scratch);

}  // namespace bitale
