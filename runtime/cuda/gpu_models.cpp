#include "runtime/cuda/gpu_models.h"

#include <fmt/format.h>

#include <algorithm>

namespace bitale::cuda {

namespace {

constexpr std::int64_t gigabyte = std::int64_t{1} << 30;

constexpr GpuModel models[] = {
    {"Tesla T4", 75, 40, 1590000, 5001000, 4 << 20, 65536, 16, 1024, 15 * gigabyte},
    {"NVIDIA A100", 80, 108, 1410000, 1215000, 40 << 20, 166912, 32, 2048, 40 * gigabyte},
    {"NVIDIA H100", 90, 132, 1980000, 2619000, 50 << 20, 232448, 32, 2048, 79 * gigabyte},
    {"NVIDIA GeForce RTX 5090", 120, 170, 2407000, 14001000, 96 << 20, 101376, 24, 1536, 31 * gigabyte},
};

}  // namespace

std::span<const GpuModel> gpu_models() { return models; }

const GpuModel* model_for(const std::string& architecture) {
    const int wanted = std::stoi(architecture.substr(3));
    const GpuModel* found = nullptr;
    for (const GpuModel& model : models)
        if (model.architecture <= wanted) found = &model;
    return found;
}

std::string description_for_cudnn(const GpuModel& g) {
    return fmt::format(
        R"({{"cudaDeviceId":0,"deviceVer":{},"driverVer":13000,"deviceName":"{}","totalGlobalMem":{},)"
        R"("maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
        R"("multiProcessorCount":{},"smClockRateKHz":{},"memClockRateKHz":{},"l2CacheSize":{},"warpSize":32,)"
        R"("maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},)"
        R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":{},)"
        R"("maxThreadsPerBlock":1024,"maxThreadsPerSM":{},"pciDeviceId":0,"isTccDriver":0,)"
        R"("supportCoopLaunch":1}})",
        g.architecture * 10, g.name, g.memory_bytes, g.processors, g.clock, g.memory_clock, g.l2_bytes,
        g.shared_bytes, g.blocks, g.threads);
}

}  // namespace bitale::cuda
