// CUDA's structs as each version of the runtime has them, for the side of the library: written down apart
// from what Bitale declares for the side of the caller (runtime/cuda/types.h), so that the two can disagree.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitale::cuda::abi {

struct Dimensions {  // dim3
    unsigned x, y, z;
};

struct LaunchConfiguration {  // cudaLaunchConfig_t
    Dimensions grid, block;
    std::size_t dynamic_shared_bytes;
    void* stream;
    void* attributes;
    unsigned attribute_count;
};
static_assert(sizeof(LaunchConfiguration) == 56 && offsetof(LaunchConfiguration, block) == 12 &&
              offsetof(LaunchConfiguration, dynamic_shared_bytes) == 24 &&
              offsetof(LaunchConfiguration, stream) == 32 &&
              offsetof(LaunchConfiguration, attribute_count) == 48);

struct FunctionProperties {  // cudaFuncAttributes
    std::size_t shared_bytes, constant_bytes, local_bytes;
    int most_threads, registers, ptx_version, binary_version;
    int rest[26];
};
static_assert(sizeof(FunctionProperties) == 144 && offsetof(FunctionProperties, most_threads) == 24 &&
              offsetof(FunctionProperties, binary_version) == 36);

struct NodeParameters {  // cudaGraphNodeParams, with cudaConditionalNodeParams inside
    int type;
    int reserved[3];
    unsigned long long handle;
    int condition;
    unsigned bodies;
    void** body;
    void* context;  // since 13.1; unused before
    long long rest[26];
};
static_assert(sizeof(NodeParameters) == 256 && offsetof(NodeParameters, handle) == 16 &&
              offsetof(NodeParameters, condition) == 24 && offsetof(NodeParameters, bodies) == 28 &&
              offsetof(NodeParameters, body) == 32 && offsetof(NodeParameters, context) == 40);

// cudaDeviceProp: its length, and where the numbers are that we tell. CUDA 13 dropped some members.
constexpr std::size_t properties_bytes(int cuda) { return cuda < 13000 ? 1032 : 1008; }
struct Property {
    std::size_t in_12, in_13, bytes;
    std::int64_t value;
};

}  // namespace bitale::cuda::abi
