// Doors to a GPU: its memory, and what is launched on it. What is refused is refused for want of memory,
// which CUDA says of launches too; the GPU goes on.
#pragma once

#include <cstddef>

#include "graph/base/outside.h"
#include "runtime/cuda/tables.h"

namespace bitale::cuda {

inline Status device_memory(const RuntimeTable& runtime, void** block, std::size_t bytes) {
    return outside::refused(outside::Door::device_memory) ? error_out_of_memory
                                                          : runtime.cudaMalloc(block, bytes);
}

// Of the host, where the GPU reaches it.
inline Status locked_memory(const RuntimeTable& runtime, void** block, std::size_t bytes) {
    return outside::refused(outside::Door::device_memory) ? error_out_of_memory
                                                          : runtime.cudaMallocHost(block, bytes);
}
inline Status mapped_memory(const RuntimeTable& runtime, void** block, std::size_t bytes) {
    return outside::refused(outside::Door::device_memory)
               ? error_out_of_memory
               : runtime.cudaHostAlloc(block, bytes, host_memory_is_mapped);
}

inline Status start_kernel(const RuntimeTable& runtime, const LaunchConfig& config, KernelFunction kernel,
                           void** arguments) {
    return outside::refused(outside::Door::launch) ? error_out_of_memory
                                                   : runtime.cudaLaunchKernelExC(&config, kernel, arguments);
}

}  // namespace bitale::cuda
