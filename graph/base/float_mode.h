// How a thread rounds floats.
#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#include <fenv.h>
#endif

#include <cstdint>

namespace bitale {

// While it lives, the thread rounds to nearest, keeps small numbers, and does not trap; afterwards, as
// before. A library that was linked with -ffast-math, or fesetround(), changes that for the caller, and each
// new thread inherits it. Functions of <fenv.h> would take longer than a short call.
class DefaultFloatMode {
  public:
#if defined(__x86_64__)
    DefaultFloatMode() : vector_(_mm_getcsr()) {
        asm volatile("fnstcw %0" : "=m"(x87_));
        if ((vector_ & ~vector_flags) != vector_default) _mm_setcsr(vector_default);
        if (x87_ != x87_default) load_x87(x87_default);
    }
    ~DefaultFloatMode() {
        if ((vector_ & ~vector_flags) != vector_default) _mm_setcsr(vector_);
        if (x87_ != x87_default) load_x87(x87_);
    }
#elif defined(__aarch64__)
    DefaultFloatMode() {
        asm volatile("mrs %0, fpcr" : "=r"(mode_));
        if (mode_ != 0) asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
    }
    ~DefaultFloatMode() {
        if (mode_ != 0) asm volatile("msr fpcr, %0" : : "r"(mode_));
    }
#else
    DefaultFloatMode() {
        fegetenv(&mode_);
        fesetenv(FE_DFL_ENV);
    }
    ~DefaultFloatMode() { fesetenv(&mode_); }
#endif
    DefaultFloatMode(const DefaultFloatMode&) = delete;
    DefaultFloatMode& operator=(const DefaultFloatMode&) = delete;

  private:
#if defined(__x86_64__)
    static constexpr unsigned vector_flags = 0x3f, vector_default = 0x1f80;
    static constexpr std::uint16_t x87_default = 0x37f;
    // What was raised meanwhile shall not trap afterwards.
    static void load_x87(std::uint16_t mode) { asm volatile("fnclex\n\tfldcw %0" : : "m"(mode)); }
    unsigned vector_;
    std::uint16_t x87_ = x87_default;
#elif defined(__aarch64__)
    std::uint64_t mode_ = 0;
#else
    fenv_t mode_;
#endif
};

}  // namespace bitale
