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
                 error_insufficient_driver = 35, error_needs_newer_driver = 36, error_no_device = 100,
                 error_not_ready = 600, error_driver_mismatch = 803, error_compatibility = 804;

struct StreamHandle;
struct EventHandle;
struct LibraryHandle;
struct KernelHandle;
using Stream = StreamHandle*;
using Event = EventHandle*;
using Library = LibraryHandle*;
using KernelFunction = KernelHandle*;
using HostFunction = void (*)(void* data);  // cudaHostFn_t

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
constexpr unsigned stream_non_blocking = 1;    // cudaStreamNonBlocking
constexpr unsigned event_without_timing = 2;   // cudaEventDisableTiming
constexpr unsigned host_memory_is_mapped = 2;  // cudaHostAllocMapped
// cudaDeviceProp begins with the name in both versions; the rest differs, so it is only room.
struct DeviceProperties {
    char name[256];
    char rest[7936];
};

// cudaFuncAttributes; begins with the bytes of static shared memory. The rest is only room.
struct FunctionAttributes {
    std::size_t shared_bytes = 0;
    char rest[504] = {};
};

// ---- its graphs ----

struct GraphHandle;
struct GraphNodeHandle;
struct GraphExecutableHandle;
using GraphPointer = GraphHandle*;
using GraphNode = GraphNodeHandle*;
using GraphExecutable = GraphExecutableHandle*;
using ConditionalHandle = unsigned long long;

enum CaptureMode : int { capture_of_this_thread = 1 };  // cudaStreamCaptureModeThreadLocal
constexpr unsigned assign_default_at_launch = 1;        // cudaGraphCondAssignDefault
struct GraphEdge;                                       // cudaGraphEdgeData; we pass none

struct GraphNodeParameters {  // cudaGraphNodeParams, of a conditional node
    int type = 13;            // cudaGraphNodeTypeConditional
    int reserved[3] = {};
    ConditionalHandle handle = 0;
    int condition = 1;  // cudaGraphCondTypeWhile
    unsigned bodies = 1;
    GraphPointer* body = nullptr;  // filled by cudaGraphAddNode: `bodies` graphs
    long long rest[27] = {};
};
static_assert(sizeof(GraphNodeParameters) == 256 && offsetof(GraphNodeParameters, handle) == 16 &&
              offsetof(GraphNodeParameters, body) == 32);

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
    lt_workspace_limit = 1,   // CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
    lt_alignment_a = 5,       // CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES
    lt_alignment_b = 6,
    lt_alignment_c = 7,
    lt_alignment_d = 8,
    lt_compute_tf32 = 77,       // CUBLAS_COMPUTE_32F_FAST_TF32
    lt_compute_bf16 = 75,       // CUBLAS_COMPUTE_32F_FAST_16BF
    lt_epilogue = 7,            // CUBLASLT_MATMUL_DESC_EPILOGUE
    lt_bias_pointer = 8,        // CUBLASLT_MATMUL_DESC_BIAS_POINTER
    lt_epilogue_relu = 2,       // CUBLASLT_EPILOGUE_RELU
    lt_epilogue_bias = 4,       // CUBLASLT_EPILOGUE_BIAS
    lt_epilogue_bias_relu = 6,  // CUBLASLT_EPILOGUE_RELU_BIAS
    lt_algorithm_id = 0,        // CUBLASLT_ALGO_CONFIG_ID
    lt_algorithm_tile = 1,      // CUBLASLT_ALGO_CONFIG_TILE_ID
    lt_algorithm_split = 2,     // CUBLASLT_ALGO_CONFIG_SPLITK_NUM
    lt_algorithm_stages = 6     // CUBLASLT_ALGO_CONFIG_STAGES_ID
};

// ---- cuDNN 9, its backend of graphs ----

struct DnnHandle;
struct DnnDescriptor;
enum DnnKind : int {  // cudnnBackendDescriptorType_t
    dnn_pointwise = 0,
    dnn_convolution = 1,
    dnn_engine = 2,
    dnn_engine_config = 3,
    dnn_heuristics = 4,
    dnn_plan = 5,
    dnn_knob_choice = 7,
    dnn_convolution_forward = 10,
    dnn_convolution_filter_gradient = 11,
    dnn_convolution_image_gradient = 12,
    dnn_pointwise_operation = 13,
    dnn_graph = 15,
    dnn_variant_pack = 16,
    dnn_tensor = 17,
    dnn_device = 38
};
enum DnnType : int {  // cudnnBackendAttributeType_t
    dnn_handle_type = 0,
    dnn_data_type = 1,
    dnn_boolean = 2,
    dnn_int64 = 3,
    dnn_float = 4,
    dnn_pointer = 6,
    dnn_convolution_mode = 7,
    dnn_heuristics_mode = 8,
    dnn_knob_type = 9,
    dnn_nan_propagation = 10,
    dnn_numerical_note = 11,
    dnn_pointwise_mode = 14,
    dnn_descriptor = 15,
    dnn_behavior_note = 19,
    dnn_char = 24
};
enum DnnAttribute : int {  // cudnnBackendAttributeName_t
    dnn_pointwise_mode_is = 0,
    dnn_pointwise_compute = 1,
    dnn_pointwise_nan = 2,
    dnn_convolution_compute = 100,
    dnn_convolution_mode_is = 101,
    dnn_convolution_dilations = 102,
    dnn_convolution_strides = 103,
    dnn_convolution_padding_after = 104,
    dnn_convolution_padding_before = 105,
    dnn_convolution_axes = 106,
    dnn_heuristics_mode_is = 200,
    dnn_heuristics_graph = 201,
    dnn_heuristics_results = 202,
    dnn_heuristics_device = 204,
    dnn_config_engine = 300,
    dnn_config_knobs = 302,
    dnn_plan_handle = 400,
    dnn_plan_config = 401,
    dnn_plan_workspace = 402,
    dnn_plan_device = 407,
    dnn_knob_choice_type = 600,
    dnn_knob_choice_value = 601,
    // Of the three operations: alpha, beta, convolution, filters, image, output, one after another.
    dnn_forward_alpha = 700,
    dnn_image_gradient_alpha = 706,
    dnn_filter_gradient_alpha = 712,
    dnn_operation_pointwise = 750,
    dnn_operation_x = 751,
    dnn_operation_b = 752,
    dnn_operation_y = 753,
    dnn_graph_handle = 800,
    dnn_graph_operations = 801,
    dnn_tensor_alignment = 900,
    dnn_tensor_type = 901,
    dnn_tensor_shape = 902,
    dnn_tensor_strides = 903,
    dnn_tensor_id = 906,
    dnn_tensor_virtual = 907,
    dnn_pack_ids = 1000,
    dnn_pack_pointers = 1001,
    dnn_pack_workspace = 1003,
    dnn_engine_graph = 1300,
    dnn_engine_index = 1301,
    dnn_engine_numerical_notes = 1303,
    dnn_engine_behavior_notes = 1305,
    dnn_engine_device = 1307,
    dnn_device_json = 2702
};
enum DnnNumber : int {
    dnn_float32 = 0,                // CUDNN_DATA_FLOAT
    dnn_flipped_convolution = 0,    // CUDNN_CONVOLUTION
    dnn_cross_correlation = 1,      // CUDNN_CROSS_CORRELATION
    dnn_add = 0,                    // CUDNN_POINTWISE_ADD
    dnn_relu = 100,                 // CUDNN_POINTWISE_RELU_FWD
    dnn_propagate_nan = 1,          // CUDNN_PROPAGATE_NAN
    dnn_heuristics_fallback = 2,    // CUDNN_HEUR_MODE_FALLBACK
    dnn_heuristics_a = 3,           // CUDNN_HEUR_MODE_A
    dnn_note_tensor_core = 0,       // CUDNN_NUMERICAL_NOTE_TENSOR_CORE
    dnn_note_down_convert = 1,      // CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS
    dnn_note_reduced_sum = 2,       // CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION
    dnn_note_fft = 3,               // CUDNN_NUMERICAL_NOTE_FFT
    dnn_note_nondeterministic = 4,  // CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC
    dnn_note_winograd = 5,          // CUDNN_NUMERICAL_NOTE_WINOGRAD; those of its tile sizes follow
    dnn_note_winograd_4x4 = 6,      // CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4
    dnn_note_winograd_last = 8,     // CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13
    dnn_note_strict_nan = 9,        // CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP
    dnn_note_runtime_compiled = 0   // CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION
};

}  // namespace bitale::cuda
