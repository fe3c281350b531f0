#include "codegen/gpu_facts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace bitale {

namespace {

constexpr std::int64_t KiB = 1 << 10, MiB = 1 << 20;

struct Row {
    std::string_view architecture;
    int multiprocessors;
    double clock;  // GHz
    int threads, blocks, lanes;
    std::int64_t shared_bytes, l2_bytes;
    double dram_rate;  // GB/s
};

// Data sheets and tuning guides of the vendor; clocks are those under load.
constexpr std::array rows{
    Row{"sm_75", 40, 1.59, 1024, 16, 64, 64 * KiB, 4 * MiB, 320},         // T4
    Row{"sm_80", 108, 1.41, 2048, 32, 64, 164 * KiB, 40 * MiB, 1555},     // A100 SXM
    Row{"sm_86", 84, 1.70, 1536, 16, 128, 100 * KiB, 6 * MiB, 696},       // A40
    Row{"sm_89", 142, 2.40, 1536, 24, 128, 100 * KiB, 96 * MiB, 864},     // L40
    Row{"sm_90", 132, 1.755, 2048, 32, 128, 228 * KiB, 50 * MiB, 3350},   // H100 SXM
    Row{"sm_100", 148, 1.85, 2048, 32, 128, 228 * KiB, 126 * MiB, 8000},  // B200
    Row{"sm_120", 170, 2.41, 1536, 24, 128, 100 * KiB, 96 * MiB, 1792},   // RTX 5090
};

}  // namespace

std::optional<GpuFacts> gpu_facts(const std::string& architecture) {
    // 64 bytes a cycle reach each multiprocessor; measured totals of the L2 are about half of that.
    constexpr double l2_bytes_a_cycle = 32;
    for (const Row& row : rows) {
        if (row.architecture != architecture) continue;
        GpuFacts f;
        f.multiprocessors = row.multiprocessors;
        f.clock = row.clock;
        f.threads = row.threads;
        f.blocks = row.blocks;
        f.lanes = row.lanes;
        f.shared_bytes = row.shared_bytes;
        f.l2_bytes = row.l2_bytes;
        f.l2_rate = l2_bytes_a_cycle * row.multiprocessors;
        f.dram_rate = row.dram_rate / row.clock;
        return f;
    }
    return std::nullopt;
}

double blocks_at_once(const GpuFacts& gpu, double threads, double shared_bytes, double registers_of_thread) {
    constexpr double registers = 65536;        // of a multiprocessor
    constexpr double shared_of_system = 1024;  // of each block, beside its own
    double resident = std::min<double>(gpu.blocks, std::floor(gpu.threads / threads));
    resident = std::min(resident, std::floor(registers / (registers_of_thread * threads)));
    if (shared_bytes > 0)
        resident = std::min(
            resident, std::floor(static_cast<double>(gpu.shared_bytes) / (shared_bytes + shared_of_system)));
    return gpu.multiprocessors * std::max(1.0, resident);
}

}  // namespace bitale
