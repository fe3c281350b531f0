// GpuFacts: what the prediction of launches (schedule/launch_model.h) assumes of a GPU.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace bitale {

// Cycles are those of the multiprocessors' clock, rates are bytes a cycle of the whole GPU.
struct GpuFacts {
    int multiprocessors = 0;
    double clock = 0;               // GHz
    int threads = 0;                // resident on one multiprocessor, at most
    int blocks = 0;                 // resident on one multiprocessor, at most
    int lanes = 0;                  // float32 operations that a multiprocessor begins each cycle
    std::int64_t shared_bytes = 0;  // of one multiprocessor
    std::int64_t l2_bytes = 0;
    double l2_rate = 0, dram_rate = 0;
    // Cycles from a load to its use, of a dependent addition, of a shuffle, of a barrier.
    double shared = 29, l2 = 420, dram = 800, add = 4, shuffle = 23, barrier = 30;
    double launch = 2;  // microseconds of a kernel that does nothing, as part of a graph
};

// Of the largest usual product of an architecture: "sm_90" is an H100 SXM. Nothing for unknown names.
std::optional<GpuFacts> gpu_facts(const std::string& architecture);

// How many blocks of so many threads run at once: what a multiprocessor holds of them, by its threads, its
// registers and its shared memory, on all multiprocessors. At least one on each.
double blocks_at_once(const GpuFacts& gpu, double threads, double shared_bytes,
                      double registers_of_thread = 64);

}  // namespace bitale
