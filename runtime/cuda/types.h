// The types and numbers of CUDA's C interfaces that we use, declared by hand: nothing of CUDA is needed to
// build. They hold for the CUDA runtime 12.8 to 13.x and cuBLAS 12 and 13, whose interfaces agree in this
// part.
#pragma once

#include <cstddef>
#include <cstdint>

namespace bitale::cuda {

// ---- the runtime (libcudart) ----

using Status = int;  // cudaError_t
constexpr Status success = 0, error_out_of_memory = 2, error_stub_library = 34,
                 error_insufficient_driver = 35, error_no_device = 100;

struct StreamHandle;
struct EventHandle;
struct LibraryHandle;
struct KernelHandle;
using Stream = StreamHandle*;
using Event = EventHandle*;
using Library = LibraryHandle*;
using KernelFunction = KernelHandle*;

struct Extent {  // dim3
    unsigned x = 1, y = 1, z = 1;
};

struct LaunchConfig {  // cudaLaunchConfig_t
    Extent grid, block;
    std::size_t dynamic_shared_bytes = 0;
    Stream stream = nullptr;
    void* attributes = nullptr;
    unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56 && offsetof(LaunchConfig, stream) == 32);

enum CopyKind : int { host_to_device = 1, device_to_host = 2, device_to_device = 3 };  // cudaMemcpyKind
enum DeviceAttribute : int {                                                           // cudaDeviceAttr
    shared_bytes_per_block = 8,
    multiprocessors = 16,
    capability_major = 75,
    capability_minor = 76
};
constexpr unsigned stream_non_blocking = 1;  // cudaStreamNonBlocking
// cudaDeviceProp begins with the name in both versions; the rest differs, so it is only room.
struct DeviceProperties {
    char name[256];
    char rest[7936];
};

// ---- NVRTC ----

struct ProgramHandle;
using ProgramPointer = ProgramHandle*;

// ---- cuBLASLt ----

struct LtHandle;
struct LtProduct;
struct LtLayout;
struct LtPreference;
struct LtAlgorithm {
    std::uint64_t data[8];
};
struct LtChoice {  // cublasLtMatmulHeuristicResult_t
    LtAlgorithm algorithm;
    std::size_t workspace;
    int status;
    float waves;
    int reserved[4];
};
static_assert(sizeof(LtChoice) == 96);
enum LtNumber : int {
    lt_float32 = 0,           // CUDA_R_32F
    lt_compute_float32 = 68,  // CUBLAS_COMPUTE_32F: no TF32
    lt_plain = 0,             // CUBLAS_OP_N
    lt_transposed = 1,        // CUBLAS_OP_T
    lt_transpose_a = 3,       // CUBLASLT_MATMUL_DESC_TRANSA
    lt_transpose_b = 4,       // CUBLASLT_MATMUL_DESC_TRANSB
    lt_workspace_limit = 1    // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
};

}  // namespace bitale::cuda
