// What the machine can do: fused multiply-adds, copies and reads in several sizes, on one thread or more.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include "common/serve.h"

using bench::Json;

namespace {

constexpr int accumulators = 16;
#if defined(__AVX512F__)
constexpr int vector_lanes = 16;
#elif defined(__AVX__)
constexpr int vector_lanes = 8;
#else
constexpr int vector_lanes = 4;
#endif
using Vector = float __attribute__((vector_size(4 * vector_lanes)));
using Bytes = std::uint64_t __attribute__((vector_size(64), aligned(8), may_alias));

// 2 * accumulators * vector_lanes operations a turn, in chains that do not wait for each other.
float multiply_add(std::int64_t turns) {
    Vector sums[accumulators] = {}, factor = Vector{} + 0.999F, step = Vector{} + 0.001F;
    asm volatile("" : "+x"(factor), "+x"(step));
    for (Vector& s : sums) asm volatile("" : "+x"(s));  // else equal sums are computed once
    for (std::int64_t k = 0; k < turns; ++k)
#pragma GCC unroll 16
        for (Vector& s : sums) s = s * factor + step;
    Vector total{};
    for (const Vector& s : sums) total += s;
    return total[0];
}

std::uint64_t read_all(const std::byte* from, std::size_t bytes) {
    Bytes sums[4] = {};
    const auto* p = reinterpret_cast<const Bytes*>(from);
    for (std::size_t k = 0; k + 4 <= bytes / sizeof(Bytes); k += 4)
#pragma GCC unroll 4
        for (std::size_t j = 0; j < 4; ++j) sums[j] += p[k + j];
    const Bytes total = sums[0] + sums[1] + sums[2] + sums[3];
    return total[0] + total[1] + total[7];
}

std::vector<int> cores() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    std::vector<int> r;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0) return {0};
    for (int k = 0; k < CPU_SETSIZE; ++k)
        if (CPU_ISSET(k, &mask)) r.push_back(k);
    return r;
}

// Seconds that the slowest of `count` threads needs for work(thread), each on its own core, all beginning
// together.
double on_threads(int count, const std::function<void(int)>& work) {
    const std::vector<int> all = cores();
    std::atomic<int> ready{0};
    std::vector<double> seconds(static_cast<std::size_t>(count));
    std::vector<std::thread> threads;
    threads.reserve(seconds.size());
    for (int t = 0; t < count; ++t)
        threads.emplace_back([&, t] {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(all[static_cast<std::size_t>(t) % all.size()], &one);
            sched_setaffinity(0, sizeof one, &one);
            ++ready;
            while (ready < count) {
            }
            const bench::Clock clock;
            work(t);
            seconds[static_cast<std::size_t>(t)] = clock.seconds();
        });
    for (std::thread& t : threads) t.join();
    return *std::max_element(seconds.begin(), seconds.end());
}

std::atomic<std::uint64_t> sink{0};  // results go here, so that they are computed

// GFLOP/s.
double peak(int threads, double seconds) {
    constexpr std::int64_t turns = 200'000;
    const double per_turn = 2.0 * accumulators * vector_lanes;
    double best = 0, spent = 0;
    while (spent < seconds) {
        const double s = on_threads(threads, [](int) { sink += multiply_add(turns) > 0 ? 1 : 0; });
        best = std::max(best, per_turn * turns * threads / s * 1e-9);
        spent += s;
    }
    return best;
}

struct Buffer {
    explicit Buffer(std::size_t bytes, int value)
        : data(static_cast<std::byte*>(::operator new(bytes, std::align_val_t(64)))) {
        std::memset(data.get(), value, bytes);
    }
    struct Free {
        void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t(64)); }
    };
    std::unique_ptr<std::byte, Free> data;
};

// GB/s of a copy (bytes read and bytes written counted) or a read of so many bytes in all; the best of 5.
double stream(const std::string& kind, int threads, std::size_t bytes, double seconds) {
    const bool copy = kind == "copy";
    const std::size_t half = copy ? bytes / 2 : bytes, part = half / static_cast<std::size_t>(threads);
    const Buffer from(half, 1), to(copy ? half : 64, 2);
    constexpr double guess = 5e10;  // bytes a second, for the number of repetitions
    const auto repeats = std::max<std::int64_t>(
        2, static_cast<std::int64_t>(guess * seconds / 5 / static_cast<double>(bytes)));
    double best = 0;
    for (int turn = 0; turn < 5; ++turn) {
        const double s = on_threads(threads, [&](int t) {
            const std::size_t offset = static_cast<std::size_t>(t) * part;
            std::uint64_t sum = 0;
            for (std::int64_t k = 0; k < repeats; ++k) {
                if (copy)
                    std::memcpy(to.data.get() + offset, from.data.get() + offset, part);
                else
                    sum += read_all(from.data.get() + offset, part);
                asm volatile("" ::: "memory");
            }
            sink += sum;
        });
        const double moved =
            static_cast<double>(part) * threads * (copy ? 2 : 1) * static_cast<double>(repeats);
        best = std::max(best, moved / s * 1e-9);
    }
    return best;
}

}  // namespace

int main() {
    return bench::serve([](const Json& request) -> Json {
        const int threads = request.value("threads", 1);
        const double seconds = request.value("seconds", 0.05);
        const auto kind = request.at("roof").get<std::string>();
        if (kind == "fma") return {{"gflops", peak(threads, seconds)}};
        if (kind != "copy" && kind != "read") throw std::runtime_error("unknown roof " + kind);
        return {{"gbs", stream(kind, threads, request.at("bytes").get<std::size_t>(), seconds)}};
    });
}
