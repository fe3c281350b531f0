// Our declarations of CUDA's functions and structs, against its headers where they are found.
#include "tests/support/catch.h"

#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>

#include <string_view>
#include <type_traits>

#include "runtime/cuda/emulator/libraries/abi.h"
#include "runtime/cuda/tables.h"

using namespace bitale::cuda;

namespace {

// A pointer for a pointer, a number or an enum for one of the same size: what a caller's registers see.
template <class Ours, class Theirs>
constexpr bool alike() {
    if constexpr (std::is_pointer_v<Ours> || std::is_pointer_v<Theirs>)
        return std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>;
    else
        return std::is_scalar_v<Ours> && std::is_scalar_v<Theirs> && sizeof(Ours) == sizeof(Theirs);
}
template <class R, class... A, class S, class... B>
constexpr bool same_call(R (*)(A...), S (*)(B...)) {
    if constexpr (sizeof...(A) == sizeof...(B)) return alike<R, S>() && (alike<A, B>() && ...);
    return false;
}

// The name behind the macros of CUDA's headers.
#define BITALE_WORD(name) #name
#define BITALE_NAME(name) BITALE_WORD(name)

#define BITALE_COMPARE(result, name, arguments)                                                        \
    static_assert(                                                                                     \
        same_call(static_cast<result(*) arguments>(nullptr), static_cast<decltype(&::name)>(nullptr)), \
        #name " is declared in another way by CUDA");
BITALE_CUDA_RUNTIME(BITALE_COMPARE)
BITALE_CUDA_GRAPHS(BITALE_COMPARE)
#if CUDART_VERSION < 13000
#define cudaGraphAddNode cudaGraphAddNode_v2
#endif
BITALE_CUDA_LOOPS(BITALE_COMPARE)

// The other names that we ask CUDA 12 for, and the structs of the emulated libraries.
#if CUDART_VERSION < 13000
static_assert(std::string_view(renamed_since_12[0].in_12) == BITALE_NAME(cudaGetDeviceProperties) &&
              std::string_view(renamed_since_12[1].in_12) == BITALE_NAME(cudaGraphAddNode));
#endif
static_assert(abi::properties_bytes(CUDART_VERSION) == sizeof(cudaDeviceProp));
static_assert(offsetof(cudaDeviceProp, multiProcessorCount) == (CUDART_VERSION < 13000 ? 388 : 384));
static_assert(offsetof(cudaDeviceProp, totalGlobalMem) == 288 && offsetof(cudaDeviceProp, warpSize) == 308 &&
              offsetof(cudaDeviceProp, maxThreadsDim) == 324 && offsetof(cudaDeviceProp, major) == 360);
static_assert(sizeof(abi::LaunchConfiguration) == sizeof(cudaLaunchConfig_t) &&
              offsetof(abi::LaunchConfiguration, stream) == offsetof(cudaLaunchConfig_t, stream));
static_assert(sizeof(abi::FunctionProperties) == sizeof(cudaFuncAttributes) &&
              offsetof(abi::FunctionProperties, most_threads) ==
                  offsetof(cudaFuncAttributes, maxThreadsPerBlock) &&
              offsetof(abi::FunctionProperties, binary_version) ==
                  offsetof(cudaFuncAttributes, binaryVersion));
static_assert(sizeof(abi::NodeParameters) == sizeof(cudaGraphNodeParams));
#if CUDART_VERSION >= 13010
static_assert(offsetof(abi::NodeParameters, context) ==
              offsetof(cudaGraphNodeParams, conditional) + offsetof(cudaConditionalNodeParams, ctx));
// Another function than the one we call, under a name that looks like its next version.
static_assert(
    same_call(static_cast<int (*)(ConditionalHandle*, GraphPointer, void*, unsigned, unsigned)>(nullptr),
              static_cast<decltype(&::cudaGraphConditionalHandleCreate_v2)>(nullptr)));
#endif

static_assert(sizeof(LaunchConfig) == sizeof(cudaLaunchConfig_t));
static_assert(offsetof(LaunchConfig, grid) == offsetof(cudaLaunchConfig_t, gridDim));
static_assert(offsetof(LaunchConfig, block) == offsetof(cudaLaunchConfig_t, blockDim));
static_assert(offsetof(LaunchConfig, stream) == offsetof(cudaLaunchConfig_t, stream));
static_assert(offsetof(LaunchConfig, attribute_count) == offsetof(cudaLaunchConfig_t, numAttrs));
static_assert(sizeof(DeviceProperties) >= sizeof(cudaDeviceProp) && offsetof(cudaDeviceProp, name) == 0);
static_assert(sizeof(FunctionAttributes) >= sizeof(cudaFuncAttributes) &&
              offsetof(cudaFuncAttributes, sharedSizeBytes) == 0);
static_assert(sizeof(GraphNodeParameters) == sizeof(cudaGraphNodeParams));
static_assert(offsetof(GraphNodeParameters, handle) ==
              offsetof(cudaGraphNodeParams, conditional) + offsetof(cudaConditionalNodeParams, handle));
static_assert(offsetof(GraphNodeParameters, condition) ==
              offsetof(cudaGraphNodeParams, conditional) + offsetof(cudaConditionalNodeParams, type));
static_assert(offsetof(GraphNodeParameters, bodies) ==
              offsetof(cudaGraphNodeParams, conditional) + offsetof(cudaConditionalNodeParams, size));
static_assert(offsetof(GraphNodeParameters, body) ==
              offsetof(cudaGraphNodeParams, conditional) + offsetof(cudaConditionalNodeParams, phGraph_out));

static_assert(error_out_of_memory == cudaErrorMemoryAllocation && error_stub_library == cudaErrorStubLibrary);
static_assert(error_insufficient_driver == cudaErrorInsufficientDriver &&
              error_no_device == cudaErrorNoDevice && error_not_ready == cudaErrorNotReady);
static_assert(stream_non_blocking == cudaStreamNonBlocking && event_without_timing == cudaEventDisableTiming);
static_assert(host_memory_is_mapped == cudaHostAllocMapped);
static_assert(assign_default_at_launch == static_cast<int>(cudaGraphCondAssignDefault));
static_assert(GraphNodeParameters{}.type == static_cast<int>(cudaGraphNodeTypeConditional));
static_assert(GraphNodeParameters{}.condition == static_cast<int>(cudaGraphCondTypeWhile));
static_assert(static_cast<int>(capture_of_this_thread) == static_cast<int>(cudaStreamCaptureModeThreadLocal));
static_assert(static_cast<int>(host_to_device) == static_cast<int>(cudaMemcpyHostToDevice) &&
              static_cast<int>(device_to_host) == static_cast<int>(cudaMemcpyDeviceToHost) &&
              static_cast<int>(device_to_device) == static_cast<int>(cudaMemcpyDeviceToDevice));
static_assert(static_cast<int>(multiprocessors) == static_cast<int>(cudaDevAttrMultiProcessorCount) &&
              static_cast<int>(capability_major) == static_cast<int>(cudaDevAttrComputeCapabilityMajor) &&
              static_cast<int>(capability_minor) == static_cast<int>(cudaDevAttrComputeCapabilityMinor) &&
              static_cast<int>(shared_bytes_per_block) ==
                  static_cast<int>(cudaDevAttrMaxSharedMemoryPerBlock));

}  // namespace

TEST_CASE("our declarations agree with the headers of CUDA") { SUCCEED("compared while compiling"); }

#else

#include <cstdio>

TEST_CASE("our declarations agree with the headers of CUDA") {
    std::printf("SKIPPED: no headers of CUDA here to compare with\n");
}

#endif
