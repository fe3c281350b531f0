#include "runtime/cpu/roof.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "graph/base/turns.h"
#include "runtime/outside.h"

namespace bitale {

namespace {

using Clock = std::chrono::steady_clock;

#if defined(__x86_64__)

// In chains that do not wait for each other: latencies are 4 or 5 cycles, two can begin in each.
constexpr int chains = 12;

#define BITALE_ADD(k, instruction) asm volatile(instruction : "+v"(s##k) : "v"(factor), "v"(step));
#define BITALE_MULTIPLY_ADDS(name, isa, bytes, instruction)                                                \
    __attribute__((target(isa))) void name(std::int64_t turns) {                                           \
        using Vector = float __attribute__((vector_size(bytes)));                                          \
        const Vector factor = Vector{} + 0.999F, step = Vector{} + 0.001F;                                 \
        Vector s0 = step, s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0, s8 = s0, s9 = s0, \
               s10 = s0, s11 = s0;                                                                         \
        for (std::int64_t t = 0; t < turns; ++t) {                                                         \
            BITALE_ADD(0, instruction)                                                                     \
            BITALE_ADD(1, instruction)                                                                     \
            BITALE_ADD(2, instruction)                                                                     \
            BITALE_ADD(3, instruction)                                                                     \
            BITALE_ADD(4, instruction)                                                                     \
            BITALE_ADD(5, instruction)                                                                     \
            BITALE_ADD(6, instruction)                                                                     \
            BITALE_ADD(7, instruction)                                                                     \
            BITALE_ADD(8, instruction)                                                                     \
            BITALE_ADD(9, instruction)                                                                     \
            BITALE_ADD(10, instruction)                                                                    \
            BITALE_ADD(11, instruction)                                                                    \
        }                                                                                                  \
    }

BITALE_MULTIPLY_ADDS(multiply_adds_512, "avx512f", 64, "vfmadd213ps %2, %1, %0")
BITALE_MULTIPLY_ADDS(multiply_adds_256, "avx2,fma", 32, "vfmadd213ps %2, %1, %0")
#undef BITALE_MULTIPLY_ADDS
#undef BITALE_ADD

struct MultiplyAdds {
    void (*run)(std::int64_t turns) = nullptr;
    double flops_of_turn = 0;
};

MultiplyAdds multiply_adds() {
    if (__builtin_cpu_supports("avx512f")) return {multiply_adds_512, 2.0 * chains * 16};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return {multiply_adds_256, 2.0 * chains * 8};
    return {};
}

// Seconds from when all threads are there to when the slowest has done work(thread); more than there can be
// where the system gives fewer threads.
double seconds_together(int threads, const std::function<void(int)>& work) {
    std::atomic<int> next{0}, ready{0};
    std::atomic<std::int64_t> begin{INT64_MAX}, end{0};
    run_on_threads(static_cast<std::size_t>(threads), [&] {
        const int own = next.fetch_add(1);
        ready.fetch_add(1);
        const auto start = Clock::now();
        while (ready.load() < threads && Clock::now() - start < std::chrono::milliseconds(20)) continue;
        const auto stamp = [] { return static_cast<std::int64_t>(Clock::now().time_since_epoch().count()); };
        std::int64_t first = stamp();
        for (std::int64_t known = begin.load(); first < known && !begin.compare_exchange_weak(known, first);)
            continue;
        work(own);
        const std::int64_t last = stamp();
        for (std::int64_t known = end.load(); last > known && !end.compare_exchange_weak(known, last);)
            continue;
    });
    return std::chrono::duration<double>(Clock::duration(end.load() - begin.load())).count();
}

double flops_per_second(int threads, const MultiplyAdds& form) {
    constexpr std::int64_t turns = 100'000;
    double best = 0;
    for (int k = 0; k < 5; ++k) {
        const double seconds = seconds_together(threads, [&](int) { form.run(turns); });
        if (seconds > 0) best = std::max(best, form.flops_of_turn * turns * threads / seconds);
    }
    return best;
}

double bytes_per_second(int threads) {
    constexpr std::size_t bytes = std::size_t{64} << 20;  // read, and as many written
    const std::size_t part = bytes / static_cast<std::size_t>(threads);
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes, std::byte{2});
    double best = 0;
    for (int k = 0; k < 3; ++k) {
        const double seconds = seconds_together(threads, [&](int t) {
            const std::size_t first = static_cast<std::size_t>(t) * part;
            std::memcpy(to.data() + first, from.data() + first, part);
        });
        if (seconds > 0) best = std::max(best, 2.0 * static_cast<double>(part) * threads / seconds);
    }
    return best;
}

#endif

}  // namespace

std::optional<Roof> measured_roof(int threads) {
#if defined(__x86_64__)
    static ForkMutex& mutex = *new ForkMutex;
    static Roof known;
    {
        const std::lock_guard lock(mutex);
        if (known.bytes_per_second > 0) return known;
    }
    const MultiplyAdds form = multiply_adds();
    if (!form.run) return std::nullopt;
    const Roof roof{bytes_per_second(threads), flops_per_second(threads, form)};
    const std::lock_guard lock(mutex);
    return known = roof;
#else
    (void)threads;
    return std::nullopt;
#endif
}

}  // namespace bitale
