// What the executor asks of a device for each step.
#pragma once

#include <cstdint>

namespace bitale {

struct GemmShape {
    std::int64_t m = 0, n = 0, k = 0;
    bool transpose_a = false, transpose_b = false;
    bool operator==(const GemmShape&) const = default;
};

class Launcher {
  public:
    Launcher() = default;
    virtual ~Launcher() = default;
    Launcher(const Launcher&) = delete;
    Launcher& operator=(const Launcher&) = delete;

    // All tasks of one phase of Program::kernels[kernel]; done when it returns.
    virtual void kernel(int kernel, int phase, void* const* buffers, const std::int64_t* sizes,
                        std::int64_t tasks) = 0;
    virtual void gemm(const GemmShape& shape, const float* a, const float* b, float* c) = 0;
    virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
    // Whether steps leave values behind; if not, results are zeros and shared variables stay as they are.
    virtual bool computes() const { return true; }
};

}  // namespace bitale
