// Tables of functions: one per library of CUDA, filled at run time. The emulator fills the runtime's table
// with functions of its own.
#pragma once

#include "runtime/cuda/types.h"

// Rows: X(result, name, arguments). The names are those of the libraries' symbols, but for those in
// renamed_since_12 below.
#define BITALE_CUDA_RUNTIME(X)                                                                           \
    X(Status, cudaGetDeviceCount, (int* count))                                                          \
    X(Status, cudaSetDevice, (int device))                                                               \
    X(Status, cudaGetDeviceProperties, (DeviceProperties * properties, int device))                      \
    X(Status, cudaDeviceGetAttribute, (int* value, DeviceAttribute attribute, int device))               \
    X(Status, cudaRuntimeGetVersion, (int* version))                                                     \
    X(Status, cudaDriverGetVersion, (int* version))                                                      \
    X(const char*, cudaGetErrorName, (Status status))                                                    \
    X(const char*, cudaGetErrorString, (Status status))                                                  \
    X(Status, cudaMemGetInfo, (std::size_t * free, std::size_t * total))                                 \
    X(Status, cudaMalloc, (void** pointer, std::size_t bytes))                                           \
    X(Status, cudaFree, (void* pointer))                                                                 \
    X(Status, cudaMallocHost, (void** pointer, std::size_t bytes))                                       \
    X(Status, cudaHostAlloc, (void** pointer, std::size_t bytes, unsigned flags))                        \
    X(Status, cudaHostGetDevicePointer, (void** there, void* here, unsigned flags))                      \
    X(Status, cudaFreeHost, (void* pointer))                                                             \
    X(Status, cudaMemcpyAsync, (void* to, const void* from, std::size_t bytes, CopyKind, Stream stream)) \
    X(Status, cudaMemsetAsync, (void* pointer, int value, std::size_t bytes, Stream stream))             \
    X(Status, cudaStreamCreateWithFlags, (Stream * stream, unsigned flags))                              \
    X(Status, cudaStreamDestroy, (Stream stream))                                                        \
    X(Status, cudaStreamSynchronize, (Stream stream))                                                    \
    X(Status, cudaStreamQuery, (Stream stream))                                                          \
    X(Status, cudaEventCreateWithFlags, (Event * event, unsigned flags))                                 \
    X(Status, cudaEventDestroy, (Event event))                                                           \
    X(Status, cudaEventRecord, (Event event, Stream stream))                                             \
    X(Status, cudaEventSynchronize, (Event event))                                                       \
    X(Status, cudaEventElapsedTime, (float* milliseconds, Event first, Event last))                      \
    X(Status, cudaLibraryLoadData,                                                                       \
      (Library * library, const void* image, int* jit_options, void** jit_values, unsigned jit_count,    \
       int* options, void** values, unsigned count))                                                     \
    X(Status, cudaLibraryUnload, (Library library))                                                      \
    X(Status, cudaLibraryGetKernel, (KernelFunction * kernel, Library library, const char* name))        \
    X(Status, cudaFuncGetAttributes, (FunctionAttributes * attributes, const void* kernel))              \
    X(Status, cudaLaunchKernelExC, (const LaunchConfig* config, const void* kernel, void** arguments))   \
    X(Status, cudaLaunchHostFunc, (Stream stream, HostFunction function, void* data))

// What a step as a graph takes; the same in CUDA 12 and 13.
#define BITALE_CUDA_GRAPHS(X)                                                                  \
    X(Status, cudaStreamBeginCapture, (Stream stream, CaptureMode mode))                       \
    X(Status, cudaStreamEndCapture, (Stream stream, GraphPointer * graph))                     \
    X(Status, cudaGraphGetNodes, (GraphPointer graph, GraphNode * nodes, std::size_t * count)) \
    X(Status, cudaGraphInstantiate,                                                            \
      (GraphExecutable * executable, GraphPointer graph, unsigned long long flags))            \
    X(Status, cudaGraphUpload, (GraphExecutable executable, Stream stream))                    \
    X(Status, cudaGraphLaunch, (GraphExecutable executable, Stream stream))                    \
    X(Status, cudaGraphExecDestroy, (GraphExecutable executable))                              \
    X(Status, cudaGraphDestroy, (GraphPointer graph))

// What a loop as a graph takes besides. (cudaGraphConditionalHandleCreate_v2, since 13.1, takes a context
// too.)
#define BITALE_CUDA_LOOPS(X)                                                                        \
    X(Status, cudaGraphCreate, (GraphPointer * graph, unsigned flags))                              \
    X(Status, cudaGraphConditionalHandleCreate,                                                     \
      (ConditionalHandle * handle, GraphPointer graph, unsigned at_launch, unsigned flags))         \
    X(Status, cudaGraphAddNode,                                                                     \
      (GraphNode * node, GraphPointer graph, const GraphNode* dependencies, const GraphEdge* edges, \
       std::size_t count, GraphNodeParameters* parameters))                                         \
    X(Status, cudaStreamBeginCaptureToGraph,                                                        \
      (Stream stream, GraphPointer graph, const GraphNode* dependencies, const GraphEdge* edges,    \
       std::size_t count, CaptureMode mode))

#define BITALE_NVRTC(X)                                                                          \
    X(int, nvrtcVersion, (int* major, int* minor))                                               \
    X(int, nvrtcGetNumSupportedArchs, (int* count))                                              \
    X(int, nvrtcGetSupportedArchs, (int* architectures))                                         \
    X(const char*, nvrtcGetErrorString, (int status))                                            \
    X(int, nvrtcCreateProgram,                                                                   \
      (ProgramPointer * program, const char* source, const char* name, int headers,              \
       const char* const* header_texts, const char* const* header_names))                        \
    X(int, nvrtcDestroyProgram, (ProgramPointer * program))                                      \
    X(int, nvrtcCompileProgram, (ProgramPointer program, int count, const char* const* options)) \
    X(int, nvrtcGetProgramLogSize, (ProgramPointer program, std::size_t * bytes))                \
    X(int, nvrtcGetProgramLog, (ProgramPointer program, char* log))                              \
    X(int, nvrtcGetCUBINSize, (ProgramPointer program, std::size_t * bytes))                     \
    X(int, nvrtcGetCUBIN, (ProgramPointer program, char* image))                                 \
    X(int, nvrtcGetPTXSize, (ProgramPointer program, std::size_t * bytes))                       \
    X(int, nvrtcGetPTX, (ProgramPointer program, char* text))

#define BITALE_CUBLASLT(X)                                                                                   \
    X(std::size_t, cublasLtGetVersion, ())                                                                   \
    X(const char*, cublasLtGetStatusString, (int status))                                                    \
    X(int, cublasLtCreate, (LtHandle * *handle))                                                             \
    X(int, cublasLtDestroy, (LtHandle * handle))                                                             \
    X(int, cublasLtMatmulDescCreate, (LtProduct * *product, int compute, int scale))                         \
    X(int, cublasLtMatmulDescDestroy, (LtProduct * product))                                                 \
    X(int, cublasLtMatmulDescSetAttribute,                                                                   \
      (LtProduct * product, int attribute, const void* value, std::size_t bytes))                            \
    X(int, cublasLtMatrixLayoutCreate,                                                                       \
      (LtLayout * *layout, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t stride))        \
    X(int, cublasLtMatrixLayoutDestroy, (LtLayout * layout))                                                 \
    X(int, cublasLtMatmulPreferenceCreate, (LtPreference * *preference))                                     \
    X(int, cublasLtMatmulPreferenceDestroy, (LtPreference * preference))                                     \
    X(int, cublasLtMatmulPreferenceSetAttribute,                                                             \
      (LtPreference * preference, int attribute, const void* value, std::size_t bytes))                      \
    X(int, cublasLtMatmulAlgoGetHeuristic,                                                                   \
      (LtHandle * handle, LtProduct * product, LtLayout * a, LtLayout * b, LtLayout * c, LtLayout * d,       \
       LtPreference * preference, int wanted, LtChoice* choices, int* found))                                \
    X(int, cublasLtMatmul,                                                                                   \
      (LtHandle * handle, LtProduct * product, const void* alpha, const void* a, LtLayout* layout_a,         \
       const void* b, LtLayout* layout_b, const void* beta, const void* c, LtLayout* layout_c, void* d,      \
       LtLayout* layout_d, const LtAlgorithm* algorithm, void* workspace, std::size_t bytes, Stream stream)) \
    X(int, cublasLtMatmulAlgoConfigGetAttribute,                                                             \
      (const LtAlgorithm* algorithm, int attribute, void* value, std::size_t bytes, std::size_t* written))

#define BITALE_CUDNN(X)                                                                                  \
    X(std::size_t, cudnnGetVersion, ())                                                                  \
    X(const char*, cudnnGetErrorString, (int status))                                                    \
    X(void, cudnnGetLastErrorString, (char* text, std::size_t bytes))                                    \
    X(int, cudnnCreate, (DnnHandle * *handle))                                                           \
    X(int, cudnnSetStream, (DnnHandle * handle, Stream stream))                                          \
    X(int, cudnnBackendCreateDescriptor, (int kind, DnnDescriptor** descriptor))                         \
    X(int, cudnnBackendDestroyDescriptor, (DnnDescriptor * descriptor))                                  \
    X(int, cudnnBackendFinalize, (DnnDescriptor * descriptor))                                           \
    X(int, cudnnBackendSetAttribute,                                                                     \
      (DnnDescriptor * descriptor, int attribute, int type, std::int64_t count, const void* values))     \
    X(int, cudnnBackendGetAttribute,                                                                     \
      (const DnnDescriptor* descriptor, int attribute, int type, std::int64_t room, std::int64_t* count, \
       void* values))                                                                                    \
    X(int, cudnnBackendExecute, (DnnHandle * handle, DnnDescriptor * plan, DnnDescriptor * pack))

#define BITALE_CUSOLVER(X) X(int, cusolverGetVersion, (int* version))
#define BITALE_NCCL(X) X(int, ncclGetVersion, (int* version))
#define BITALE_CUDA_DRIVER(X)                  \
    X(int, cuInit, (unsigned flags))           \
    X(int, cuDriverGetVersion, (int* version)) \
    X(int, cuDeviceGetCount, (int* count))     \
    X(int, cuGetErrorString, (int, const char** text))

namespace bitale::cuda {

// What we declare as CUDA 13 does, CUDA 12 has under the second name; the first stands for another signature
// there (a node without data of edges), or for an older struct.
struct Renamed {
    const char *name, *in_12;
};
constexpr Renamed renamed_since_12[] = {{"cudaGetDeviceProperties", "cudaGetDeviceProperties_v2"},
                                        {"cudaGraphAddNode", "cudaGraphAddNode_v2"}};

#define BITALE_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
struct RuntimeTable {
    BITALE_CUDA_RUNTIME(BITALE_MEMBER)
};
struct GraphTable {
    BITALE_CUDA_GRAPHS(BITALE_MEMBER)
};
struct LoopTable {
    BITALE_CUDA_LOOPS(BITALE_MEMBER)
};
struct NvrtcTable {
    BITALE_NVRTC(BITALE_MEMBER)
};
struct CublasLtTable {
    BITALE_CUBLASLT(BITALE_MEMBER)
};
struct CudnnTable {
    BITALE_CUDNN(BITALE_MEMBER)
};
struct CusolverTable {
    BITALE_CUSOLVER(BITALE_MEMBER)
};
struct NcclTable {
    BITALE_NCCL(BITALE_MEMBER)
};
struct DriverTable {
    BITALE_CUDA_DRIVER(BITALE_MEMBER)
};
#undef BITALE_MEMBER

}  // namespace bitale::cuda
