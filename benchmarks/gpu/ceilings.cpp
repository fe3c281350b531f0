#include "gpu/ceilings.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <utility>

#include "gpu/parts.h"

using namespace bitale::cuda;

namespace bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Four loads are under way before the first store. Each pass begins elsewhere, so that another multiprocessor
// meets what the last pass left, in the L2 cache if anywhere.
constexpr const char* copy_text = R"(
struct alignas(16) probe_four { float at[4]; };
struct probe_copy_arguments { const probe_four* from; probe_four* to; long long count, passes, shift; };
static __device__ __forceinline__ long long probe_wrap(long long i, long long count) {
    return i >= count ? i - count : i;
}
extern "C" __global__ __launch_bounds__(256) void probe_copy(const probe_copy_arguments p) {
    const long long stride = (long long)gridDim.x * blockDim.x;
    const long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const probe_four* __restrict__ from = p.from;
    probe_four* __restrict__ to = p.to;
    long long offset = 0;
    for (long long pass = 0; pass < p.passes; ++pass) {
        long long i = first;
        for (; i + 3 * stride < p.count; i += 4 * stride) {
            const long long a = probe_wrap(i + offset, p.count), b = probe_wrap(i + stride + offset, p.count);
            const long long c = probe_wrap(i + 2 * stride + offset, p.count);
            const long long d = probe_wrap(i + 3 * stride + offset, p.count);
            const probe_four u = from[a], v = from[b], w = from[c], x = from[d];
            to[a] = u;
            to[b] = v;
            to[c] = w;
            to[d] = x;
        }
        for (; i < p.count; i += stride) {
            const long long a = probe_wrap(i + offset, p.count);
            to[a] = from[a];
        }
        offset = probe_wrap(offset + p.shift, p.count);
    }
}
)";
struct CopyArguments {
    const void* from;
    void* to;
    long long count, passes, shift;
};

// Eight chains of a thread hide the latency of each other.
constexpr int chains = 8, fma_unrolled = 16;
constexpr const char* fma_text = R"(
struct probe_fma_arguments { float* to; float a, b; long long turns; };
extern "C" __global__ __launch_bounds__(256) void probe_fma(const probe_fma_arguments p) {
    float x[8];
    for (int c = 0; c < 8; ++c) x[c] = (float)threadIdx.x + (float)c;
    for (long long t = 0; t < p.turns; ++t) {
#pragma unroll
        for (int u = 0; u < 16; ++u) {
#pragma unroll
            for (int c = 0; c < 8; ++c) x[c] = __fmaf_rn(x[c], p.a, p.b);
        }
    }
    float sum = 0;
    for (int c = 0; c < 8; ++c) sum += x[c];
    p.to[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
)";
struct FmaArguments {
    float* to;
    float a, b;
    long long turns;
};

constexpr int threads = 256, blocks_a_multiprocessor = 8;

Json slope_of(const std::vector<std::pair<std::int64_t, double>>& seconds) {
    const auto& [few, first] = seconds.front();
    const auto& [many, last] = seconds.back();
    Json r = {{"us", 1e6 * (last - first) / static_cast<double>(many - few)}};
    Json& list = r["launches"] = Json::array();
    for (const auto& [count, time] : seconds) list.push_back({{"count", count}, {"us", 1e6 * time}});
    return r;
}

}  // namespace

Json measure_copy(Machine& machine, bool reduced) {
    constexpr std::int64_t mega = std::int64_t{1} << 20;
    const KernelFunction kernel = machine.kernel("probe_copy", copy_text);
    const std::int64_t blocks = std::max(1, machine.attribute(multiprocessors)) * blocks_a_multiprocessor;
    const std::int64_t grid = reduced ? 4 : blocks;
    std::size_t free = 0, total = 0;
    machine.require(machine.runtime().cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
    Json sizes = Json::array(), result = Json::object();
    double best = 0;
    std::vector<std::int64_t> list = {mega, 4 * mega, 16 * mega, 64 * mega, 256 * mega};
    if (reduced) list = {mega / 64, mega / 16};
    for (const std::int64_t bytes : list) {
        if (bytes > static_cast<std::int64_t>(free / 4)) break;
        const auto length = static_cast<std::size_t>(bytes);
        Block from(machine, length), to(machine, length);
        machine.fill(from.data(), 0x3c, length);
        machine.fill(to.data(), 0, length);
        CopyArguments arguments{from.data(), to.data(), bytes / 16, 1, (bytes / 16) / 7 + 1};
        arguments.passes = reduced ? 2 : std::clamp<std::int64_t>(1024 * mega / bytes, 4, 256);
        const double seconds = settled_seconds(machine, reduced, result, [&](std::int64_t times) {
            return machine.seconds([&] {
                for (std::int64_t k = 0; k < times; ++k) machine.launch(kernel, grid, threads, &arguments);
            });
        });
        const std::size_t part = std::min<std::size_t>(length, mega);
        std::vector<unsigned char> got(part);
        for (const std::size_t at : {std::size_t{0}, length - part}) {
            machine.download(got.data(), static_cast<char*>(to.data()) + at, part);
            if (std::count(got.begin(), got.end(), 0x3c) != static_cast<std::ptrdiff_t>(part))
                throw Wrong(fmt::format("a copy of {} bytes is not what was copied", bytes),
                            {{"sizes", sizes}});
        }
        const double rate = 2e-9 * static_cast<double>(bytes * arguments.passes) / seconds;
        sizes.push_back({{"bytes", bytes}, {"passes", arguments.passes}, {"GB_s", rate}});
        best = rate;
    }
    // Of the largest: what memory itself does. The smaller ones fit into caches.
    result.update({{"GB_s", best}, {"sizes", sizes}});
    return result;
}

Json measure_fma(Machine& machine, bool reduced) {
    const KernelFunction kernel = machine.kernel("probe_fma", fma_text);
    const std::int64_t blocks =
        reduced ? 2 : std::max(1, machine.attribute(multiprocessors)) * blocks_a_multiprocessor;
    const std::int64_t count = blocks * threads;
    Block to(machine, static_cast<std::size_t>(count) * sizeof(float));
    const FmaArguments arguments{to.floats(), 0.5F, 1.25F, reduced ? 2 : 4096};
    Json result = Json::object();
    const double seconds = settled_seconds(machine, reduced, result, [&](std::int64_t times) {
        return machine.seconds([&] {
            for (std::int64_t k = 0; k < times; ++k) machine.launch(kernel, blocks, threads, &arguments);
        });
    });
    const std::vector<float> got = machine.floats(to, static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < got.size(); ++i) {
        float sum = 0;
        for (int c = 0; c < chains; ++c) {
            auto x = static_cast<float>(i % threads) + static_cast<float>(c);
            // It has come to its limit, 2 b, long before.
            for (long long t = 0; t < std::min(arguments.turns, 8LL) * fma_unrolled; ++t)
                x = std::fma(x, arguments.a, arguments.b);
            sum += x;
        }
        if (got[i] != sum)
            throw Wrong(fmt::format("thread {} has {}, and should have {}", i, got[i], sum), {});
    }
    const double flop =
        2.0 * chains * fma_unrolled * static_cast<double>(arguments.turns) * static_cast<double>(count);
    result.update({{"TFLOP_s", 1e-12 * flop / seconds}, {"flop", flop}, {"us", 1e6 * seconds}});
    return result;
}

Json measure_launch(Machine& machine, bool reduced) {
    const KernelFunction kernel = empty_kernel(machine);
    const int launches = reduced ? 10 : 1000;
    const void* nothing = nullptr;
    Json result = Json::object();
    double host = 0;
    const double events = settled_seconds(machine, reduced, result, [&](std::int64_t times) {
        return machine.seconds([&] {
            const Clock::time_point start = Clock::now();
            for (std::int64_t k = 0; k < times * launches; ++k) machine.launch(kernel, 1, 32, &nothing);
            host = seconds_since(start) / static_cast<double>(times);
        });
    });
    const double waited = settled_seconds(machine, reduced, result, [&](std::int64_t times) {
        const Clock::time_point start = Clock::now();
        for (std::int64_t k = 0; k < times; ++k) {
            machine.launch(kernel, 1, 32, &nothing);
            machine.wait();
        }
        return seconds_since(start);
    });
    result.update({{"us", 1e6 * events / launches},
                   {"host_us", 1e6 * host / launches},
                   {"waited_for_us", 1e6 * waited},
                   {"launches", launches}});
    return result;
}

Json measure_graph_node(Machine& machine, bool reduced) {
    machine.graphs();  // or none
    const KernelFunction kernel = empty_kernel(machine);
    const void* nothing = nullptr;
    Json result = Json::object();
    std::vector<std::pair<std::int64_t, double>> seconds;
    for (const std::int64_t nodes :
         reduced ? std::vector<std::int64_t>{3, 20} : std::vector<std::int64_t>{100, 1000}) {
        const auto graph = captured(machine, [&](Stream stream) {
            for (std::int64_t k = 0; k < nodes; ++k) machine.launch(kernel, 1, 32, &nothing, stream);
        });
        seconds.emplace_back(nodes, settled_seconds(machine, reduced, result, [&](std::int64_t times) {
                                 return machine.seconds([&] {
                                     for (std::int64_t k = 0; k < times; ++k) graph->launch();
                                 });
                             }));
    }
    result.update(slope_of(seconds));
    return result;
}

Json measure_while_turn(Machine& machine, bool reduced) {
    WhileLoop loop(machine);
    Json result = Json::object();
    std::vector<std::pair<std::int64_t, double>> seconds;
    std::int64_t expected = 0;
    for (const std::int64_t turns :
         reduced ? std::vector<std::int64_t>{3, 20} : std::vector<std::int64_t>{100, 1000})
        seconds.emplace_back(turns, settled_seconds(machine, reduced, result, [&](std::int64_t times) {
                                 double sum = 0;
                                 for (std::int64_t k = 0; k < times; ++k) {
                                     expected += turns;
                                     sum += loop.run(turns);
                                 }
                                 return sum;
                             }));
    result.update(slope_of(seconds));
    if (const std::int64_t done = loop.turns_done(); done != expected)
        throw Wrong(fmt::format("{} turns were {}", expected, done), result);
    return result;
}

}  // namespace bench
