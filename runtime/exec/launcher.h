// What the executor asks of a device for each step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/program.h"
#include "runtime/exec/shares.h"

namespace bitale {

struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
    bool transpose_a = false, transpose_b = false;
    bool bias = false, relu = false;
    Precision precision = Precision::float32;
    GemmCall::Parameter parameter = GemmCall::Parameter::none;
    // As in GemmCall.
    double alpha = 1, beta = 0;
    std::int64_t slice_rows = 0, slice_columns = 0, slice_depth = 0;
    bool made_a = false, made_b = false, symmetric = false;
    std::int64_t piece_depth = 0;
    // As in GemmStrides, where `strided`.
    struct Batch {
        std::int64_t count = 0, a = 0, b = 0, c = 0;
        bool operator==(const Batch&) const = default;
    };
    bool strided = false;
    std::int64_t first_a = 0, first_b = 0, row_a = 0, row_b = 0, row_c = 0;
    std::vector<Batch> batches{};
    DType dtype = DType::float32;
    bool unsigned_a = false;
    bool operator==(const GemmShape&) const = default;
};

struct GemmData {
    const void *a = nullptr, *b = nullptr;  // null where pieces of it are made
    const void* bias = nullptr;             // null where the shape says there is none
    void* c = nullptr;                      // null where the epilogue alone needs the product
};
// A kernel that a product's step runs on slices.
struct SliceKernel {
    int kernel = -1;  // -1: there is none
    void* const* buffers = nullptr;
    std::size_t count = 0;  // of the buffers
    const std::int64_t* sizes = nullptr;
};
// After each slice, and for the pieces of operands that a slice needs.
struct SliceKernels {
    SliceKernel epilogue, a, b;
};

// A ConvCall with numbers.
struct ConvSizes {
    std::array<std::int64_t, 4> shape{}, strides{};
    bool operator==(const ConvSizes&) const = default;
};
struct ConvShape {
    ConvCall::Kind kind = ConvCall::Kind::forward;
    ConvSizes image, filters, output;
    std::array<std::int64_t, 2> stride{1, 1}, pad{0, 0}, dilation{1, 1};
    bool flip = false, bias = false, relu = false;
    Precision precision = Precision::float32;
    std::int64_t groups = 1;
    bool operator==(const ConvShape&) const = default;
};

// Where the tensors of a convolution are. What the kind says is written, the others are read.
struct ConvData {
    void *image = nullptr, *filters = nullptr, *output = nullptr;
    const void* bias = nullptr;
};
// From the buffers of its step, in the order of buffers_of.
ConvData conv_data(const ConvShape& shape, void* const* buffers);

// A RoutineCall with numbers.
struct RoutineShape {
    std::string name;
    DType dtype = DType::float32;
    std::vector<std::int64_t> sizes{};
    bool by_library = false;
    bool operator==(const RoutineShape&) const = default;
};

class Launcher {
  public:
    Launcher() = default;
    virtual ~Launcher() = default;
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    // All tasks of one phase of Program::kernels[kernel]; done when it returns. `shares`: how to share them
    // out among threads(); null where nothing is known of their costs.
    virtual void kernel(int kernel, int phase, void* const* buffers, const std::int64_t* sizes,
                        std::int64_t tasks, const Shares* shares) = 0;
    // Claims what a gemm of this shape will need, so that no gemm fails after another step has written a
    // shared variable. `stored`: its result has a buffer; `buffers`: the most that one of its kernels has.
    virtual void reserve(const GemmShape&, bool /*stored*/, std::size_t /*buffers*/) {}
    // What reserve() has taken after such calls, in bytes: the same memory serves one after another.
    struct Reserved {
        const GemmShape* shape = nullptr;
        bool stored = false;
        std::size_t buffers = 0;
    };
    virtual std::int64_t reserved_bytes(std::span<const Reserved>) const { return 0; }
    virtual std::int64_t reserved_alive() const { return 0; }  // what it has by now
    virtual void drop_reserved() {}                            // between calls
    virtual void gemm(const GemmShape& shape, const GemmData& data, const SliceKernels& kernels) = 0;
    virtual void conv(const ConvShape& shape, const ConvData& data) = 0;
    // False where it ends without a result, as iterations do that do not converge: nothing has been written
    // to shared variables then. Its memory is a buffer of the step, so nothing has to be reserved.
    virtual bool routine(const RoutineShape& shape, void* const* buffers);
    virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
    virtual int threads() const { return 1; }
    // Whether steps leave values behind; if not, results are zeros and shared variables stay as they are.
    virtual bool computes() const { return true; }
};

}  // namespace bitale
