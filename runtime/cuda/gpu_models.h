// GPUs that need not be there: what cuDNN is told of them, to plan without one.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace bitale::cuda {

struct GpuModel {
    const char* name;
    int architecture;                     // as 90 of sm_90
    int processors, clock, memory_clock;  // kHz
    int l2_bytes, shared_bytes;           // a block's shared memory, where it asks for more than usual
    int blocks, threads;                  // of a multiprocessor, at most
    std::int64_t memory_bytes;
};

// Ascending by architecture.
std::span<const GpuModel> gpu_models();

// The newest one that is not newer than the architecture, as sm_90; null where all are newer.
const GpuModel* model_for(const std::string& architecture);

// As cuDNN's descriptor of a device takes it, from 9.8 on.
std::string description_for_cudnn(const GpuModel& model);

}  // namespace bitale::cuda
