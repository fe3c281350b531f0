// What stands in front of a kernel's CUDA text when the host compiles it: CUDA's words in terms of
// EmulatorState.
#include <fmt/format.h>

#include "runtime/cuda/emulator/compile.h"

namespace bitale::cuda {

namespace {

constexpr const char* shim = R"(struct emulated_extent { unsigned x, y, z; };
struct emulated_state {
    emulated_extent thread, block, block_size, grid_size;
    unsigned lane;
    void (*barrier)(int line);
    unsigned long long (*exchange)(unsigned mask, unsigned long long word, unsigned from, int line);
    unsigned (*ballot)(unsigned mask, int predicate, int line);
};
static thread_local emulated_state* emulated;
#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define threadIdx (emulated->thread)
#define blockIdx (emulated->block)
#define blockDim (emulated->block_size)
#define gridDim (emulated->grid_size)
#define __syncthreads() emulated->barrier(__LINE__)
#define __syncwarp(...) ((void)emulated->ballot(0xffffffffu, 0, __LINE__))
#define __ballot_sync(mask, predicate) emulated->ballot(mask, (predicate) != 0, __LINE__)
template <class T>
static inline T emulated_exchange(unsigned mask, T value, unsigned from, int line) {
    unsigned long long word = 0;
    __builtin_memcpy(&word, &value, sizeof value);
    word = emulated->exchange(mask, word, from, line);
    __builtin_memcpy(&value, &word, sizeof value);
    return value;
}
#define __shfl_sync(mask, value, from) emulated_exchange(mask, value, from, __LINE__)
#define __shfl_xor_sync(mask, value, bits) emulated_exchange(mask, value, emulated->lane ^ (bits), __LINE__)
static inline unsigned emulated_down(unsigned by) {
    return emulated->lane + by < 32 ? emulated->lane + by : emulated->lane;
}
#define __shfl_down_sync(mask, value, by) emulated_exchange(mask, value, emulated_down(by), __LINE__)
static inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
static inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }
static inline long long __double_as_longlong(double x) { return __builtin_bit_cast(long long, x); }
static inline double __longlong_as_double(long long x) { return __builtin_bit_cast(double, x); }
#define __fmaf_rn __builtin_fmaf
#define __fma_rn __builtin_fma
#define __fsqrt_rn __builtin_sqrtf
#define __dsqrt_rn __builtin_sqrt
#define floorf(x) __builtin_floorf(x)
#define floor(x) __builtin_floor(x)
#define ceilf(x) __builtin_ceilf(x)
#define ceil(x) __builtin_ceil(x)
#define truncf(x) __builtin_truncf(x)
#define trunc(x) __builtin_trunc(x)
#define rintf(x) __builtin_rintf(x)
#define rint(x) __builtin_rint(x)
#define fmodf(x, y) __builtin_fmodf(x, y)
#define fmod(x, y) __builtin_fmod(x, y)
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return (unsigned long long)((unsigned __int128)a * b >> 64);
}
static inline unsigned long long atomicCAS(unsigned long long* p, unsigned long long expected,
                                           unsigned long long wanted) {
    __atomic_compare_exchange_n(p, &expected, wanted, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return expected;
}
template <class T>
static inline T atomicAdd(T* p, T x) {
    return __atomic_fetch_add(p, x, __ATOMIC_RELAXED);
}
)";

}  // namespace

std::string emulated_text(const CudaUnit& unit, const Program& program) {
    std::string text = shim + unit.text;
    for (const int k : unit.kernels) {
        const KernelText& kernel = program.kernels[static_cast<std::size_t>(k)];
        for (const std::string& entry : kernel.entries)
            text += fmt::format(
                "extern \"C\" void emulated_{0}(void* state, void** arguments) {{\n"
                "    emulated = (emulated_state*)state;\n"
                "    {0}(*({1}_arguments*)arguments[0]);\n}}\n",
                entry, kernel.name);
    }
    return text;
}

}  // namespace bitale::cuda
