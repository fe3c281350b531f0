// Waiting for something that another thread is about to do.
#pragma once

#include <sched.h>

#include <chrono>

namespace bitale {

inline void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Polls `ready`, at first without giving the core away, then yielding; false when nothing came.
template <class F>
bool poll(F&& ready, std::chrono::microseconds spinning, std::chrono::microseconds yielding) {
    const auto start = std::chrono::steady_clock::now();
    for (;;) {
        for (int i = 0; i < 64; ++i) {
            if (ready()) return true;
            pause_briefly();
        }
        const auto waited = std::chrono::steady_clock::now() - start;
        if (waited > spinning + yielding) return false;
        if (waited > spinning) sched_yield();
    }
}

}  // namespace bitale
