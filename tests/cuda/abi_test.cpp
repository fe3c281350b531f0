// Functions of CUDA as bytes see them: which symbol each of ours is bound to, and the structs that pass
// between caller and library, by the offsets of NVIDIA's headers. Runs once for each version of the emulated
// libraries.
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "runtime/cuda/libraries.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/support/catch.h"
#include "tests/support/emulator.h"

using namespace bitale::cuda;
using namespace bitale::test;

namespace {

// The version of the runtime, as 13010; 0, visibly, where it is not an emulated one.
int emulated_version() {
    int version = 0;
    const Loaded<RuntimeTable>& runtime = runtime_library();
    if (runtime.present && dlsym(dlopen(runtime.path.c_str(), RTLD_NOW), "bitale_emulated_submit"))
        runtime.table.cudaRuntimeGetVersion(&version);
    if (version == 0) std::printf("SKIPPED: cuda_home names no emulated libraries\n");
    return version;
}

template <class F>
F function_of(const char* name) {
    return reinterpret_cast<F>(dlsym(dlopen(runtime_library().path.c_str(), RTLD_NOW), name));
}

// A struct of CUDA: bytes, read and written at offsets.
struct Bytes {
    explicit Bytes(std::size_t count, unsigned char filling = 0) : all(count, filling) {}
    template <class T>
    void put(std::size_t at, T value) {
        std::memcpy(all.data() + at, &value, sizeof value);
    }
    template <class T>
    T get(std::size_t at) const {
        T value;
        std::memcpy(&value, all.data() + at, sizeof value);
        return value;
    }
    bool are(std::size_t first, unsigned char value) const {
        for (std::size_t i = first; i < all.size(); ++i)
            if (all[i] != value) return false;
        return true;
    }
    std::vector<unsigned char> all;
};

}  // namespace

TEST_CASE("each function is bound to the symbol of its version that has the signature we declare") {
    const int version = emulated_version();
    if (version == 0) return;
    std::map<std::string, std::string> bound;
    const auto note = [&](const char* name, auto* function) {
        Dl_info info{};
        REQUIRE(function);
        REQUIRE(dladdr(reinterpret_cast<void*>(function), &info) != 0);
        bound[name] = info.dli_sname ? info.dli_sname : "";
    };
    REQUIRE(graph_library().present);
    REQUIRE(loop_library().present);
#define BITALE_NOTE(result, name, arguments) note(#name, table.name);
    {
        const RuntimeTable& table = runtime_library().table;
        BITALE_CUDA_RUNTIME(BITALE_NOTE)
    }
    {
        const GraphTable& table = graph_library().table;
        BITALE_CUDA_GRAPHS(BITALE_NOTE)
    }
    {
        const LoopTable& table = loop_library().table;
        BITALE_CUDA_LOOPS(BITALE_NOTE)
    }
    REQUIRE(nvrtc_library().present);
    {
        const NvrtcTable& table = nvrtc_library().table;
        BITALE_NVRTC(BITALE_NOTE)
    }
#undef BITALE_NOTE
    CHECK(bound.size() > 50);
    // What CUDA 12 has besides under the plain name takes other arguments or fills another struct.
    std::map<std::string, std::string> renamed;
    if (version < 13000)
        renamed = {{"cudaGraphAddNode", "cudaGraphAddNode_v2"},
                   {"cudaGetDeviceProperties", "cudaGetDeviceProperties_v2"}};
    for (const auto& [name, symbol] : bound) {
        INFO(name);
        CHECK(symbol == (renamed.contains(name) ? renamed[name] : name));
    }
}

TEST_CASE("the libraries tell their version") {
    const int version = emulated_version();
    if (version == 0) return;
    const std::string words = std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    CHECK(runtime_library().path.find("emulated_cuda/" + words + "/libcudart.so." +
                                      std::to_string(version / 1000)) != std::string::npos);
    CHECK(nvrtc_version() == words);
    int driver = 0;
    CHECK(runtime_library().table.cudaDriverGetVersion(&driver) == success);
    CHECK(driver == version);
}

TEST_CASE("properties of a device are as long as the version's struct, and lie where it has them") {
    const int version = emulated_version();
    if (version == 0) return;
    const bool is_12 = version < 13000;
    const std::size_t length = is_12 ? 1032 : 1008;
    Bytes p(sizeof(DeviceProperties), 0xaa);
    auto* ours = reinterpret_cast<DeviceProperties*>(p.all.data());
    REQUIRE(runtime_library().table.cudaGetDeviceProperties(ours, 0) == success);
    CHECK(std::string(ours->name) == "emulated GPU");
    CHECK(p.get<std::size_t>(288) == std::size_t{1} << 34);  // totalGlobalMem
    CHECK(p.get<int>(308) == 32);                            // warpSize
    CHECK(p.get<int>(320) == 1024);                          // maxThreadsPerBlock
    CHECK(p.get<int>(360) == 9);                             // major
    CHECK(p.get<int>(is_12 ? 388 : 384) == 8);               // multiProcessorCount
    CHECK(p.get<unsigned char>(length - 1) == 0);
    CHECK(p.are(length, 0xaa));
    // The plain name of CUDA 12 is that of an older struct, which is not served.
    if (is_12) CHECK(function_of<int (*)(void*, int)>("cudaGetDeviceProperties")(p.all.data(), 0) == 801);
}

TEST_CASE("a launch passes its sizes and its stream at the offsets of cudaLaunchConfig_t") {
    if (emulated_version() == 0 || emulator_skipped()) return;
    const RuntimeTable& runtime = runtime_library().table;
    const CompiledModule module = compile_cuda(
        "struct k_sizes_arguments { int* out; };\n"
        "extern \"C\" __global__ void k_sizes(const k_sizes_arguments a) {\n"
        "    __shared__ int s[5];\n    s[threadIdx.x] = threadIdx.y; __syncthreads();\n"
        "    a.out[0] = gridDim.x; a.out[1] = gridDim.y; a.out[2] = gridDim.z;\n"
        "    a.out[3] = blockDim.x; a.out[4] = blockDim.y; a.out[5] = blockDim.z; a.out[6] = s[threadIdx.z % "
        "5];\n}\n",
        "sm_90", "sizes");
    Library library = nullptr;
    KernelFunction kernel = nullptr;
    void* out = nullptr;
    Stream stream = nullptr;
    REQUIRE(runtime.cudaSetDevice(0) == success);
    REQUIRE(runtime.cudaMalloc(&out, 128) == success);
    REQUIRE(runtime.cudaStreamCreateWithFlags(&stream, stream_non_blocking) == success);
    REQUIRE(runtime.cudaLibraryLoadData(&library, module.image.data(), nullptr, nullptr, 0, nullptr, nullptr,
                                        0) == success);
    REQUIRE(runtime.cudaLibraryGetKernel(&kernel, library, "k_sizes") == success);

    Bytes attributes(sizeof(FunctionAttributes), 0xaa);
    REQUIRE(runtime.cudaFuncGetAttributes(reinterpret_cast<FunctionAttributes*>(attributes.all.data()),
                                          kernel) == success);
    CHECK(attributes.get<std::size_t>(0) == 5 * sizeof(int));
    CHECK(attributes.get<int>(24) == 1024);  // maxThreadsPerBlock
    CHECK(attributes.are(144, 0xaa));

    const int sizes[] = {2, 3, 4, 5, 6, 7};
    Bytes config(56);
    for (std::size_t i = 0; i < 6; ++i) config.put<int>(i * sizeof(int), sizes[i]);
    config.put<Stream>(32, stream);
    void* list[] = {&out};
    const auto launch = function_of<int (*)(const void*, const void*, void**)>("cudaLaunchKernelExC");
    CHECK(launch(config.all.data(), kernel, list) == success);
    CHECK(static_cast<const int*>(out)[0] == -1);  // not yet: it waits in the stream
    CHECK(runtime.cudaStreamSynchronize(stream) == success);
    for (std::size_t i = 0; i < 6; ++i) CHECK(static_cast<const int*>(out)[i] == sizes[i]);
    config.put<unsigned>(48, 1);  // an attribute, which nobody here knows
    CHECK(launch(config.all.data(), kernel, list) == 1);
    CHECK(runtime.cudaFree(out) == success);
    CHECK(runtime.cudaStreamDestroy(stream) == success);
}

TEST_CASE("a loop's node passes its handle and its body at the offsets of cudaGraphNodeParams") {
    const int version = emulated_version();
    if (version == 0) return;
    const LoopTable& loops = loop_library().table;
    REQUIRE(runtime_library().table.cudaSetDevice(0) == success);
    GraphPointer graph = nullptr;
    ConditionalHandle handle = 0;
    REQUIRE(loops.cudaGraphCreate(&graph, 0) == success);
    REQUIRE(loops.cudaGraphConditionalHandleCreate(&handle, graph, 1, assign_default_at_launch) == success);
    Bytes node(256);
    node.put<int>(0, 13);                      // cudaGraphNodeTypeConditional
    node.put<unsigned long long>(16, handle);  // conditional.handle
    node.put<int>(24, 1);                      // conditional.type: WHILE
    node.put<unsigned>(28, 1);                 // conditional.size
    void* made = nullptr;
    const auto add = function_of<int (*)(void**, void*, void*, void*, std::size_t, void*)>(
        version < 13000 ? "cudaGraphAddNode_v2" : "cudaGraphAddNode");
    if (version >= 13010) {
        // conditional.ctx; before, the bytes have no meaning.
        node.put<void*>(40, &made);
        CHECK(add(&made, graph, nullptr, nullptr, 0, node.all.data()) == 201);
        node.put<void*>(40, nullptr);
    }
    REQUIRE(add(&made, graph, nullptr, nullptr, 0, node.all.data()) == success);
    auto** const body = node.get<void**>(32);
    REQUIRE(body);
    CHECK(body[0] != nullptr);
    CHECK(made != nullptr);
    CHECK(graph_library().table.cudaGraphDestroy(graph) == success);
}

TEST_CASE("a handle of 13.1 takes a context too, which must be known") {
    const int version = emulated_version();
    if (version == 0) return;
    const auto create =
        function_of<int (*)(unsigned long long*, GraphPointer, const void*, unsigned, unsigned)>(
            "cudaGraphConditionalHandleCreate_v2");
    CHECK((create != nullptr) == (version >= 13010));
    if (!create) return;
    GraphPointer graph = nullptr;
    REQUIRE(loop_library().table.cudaGraphCreate(&graph, 0) == success);
    ConditionalHandle handle = 0;
    CHECK(create(&handle, graph, &graph, 1, 1) == 201);
    CHECK(handle == 0);
    CHECK(create(&handle, graph, nullptr, 1, 1) == success);
    CHECK(handle != 0);
    CHECK(graph_library().table.cudaGraphDestroy(graph) == success);
}

TEST_CASE("work of another library runs in its stream, and is dropped once") {
    if (emulated_version() == 0) return;
    const RuntimeTable& runtime = runtime_library().table;
    const GraphTable& graphs = graph_library().table;
    const auto submit =
        function_of<int (*)(Stream, void (*)(void*), void (*)(void*), void*)>("bitale_emulated_submit");
    struct Counts {
        int runs = 0, drops = 0;
    } counts;
    const auto run = [](void* data) { ++static_cast<Counts*>(data)->runs; };
    const auto drop = [](void* data) { ++static_cast<Counts*>(data)->drops; };
    Stream stream = nullptr;
    REQUIRE(runtime.cudaSetDevice(0) == success);
    REQUIRE(runtime.cudaStreamCreateWithFlags(&stream, stream_non_blocking) == success);
    REQUIRE(submit(stream, run, drop, &counts) == success);
    CHECK(counts.runs == 0);
    CHECK(runtime.cudaStreamSynchronize(stream) == success);
    CHECK(counts.runs == 1);
    CHECK(counts.drops == 1);

    REQUIRE(graphs.cudaStreamBeginCapture(stream, capture_of_this_thread) == success);
    REQUIRE(submit(stream, run, drop, &counts) == success);
    GraphPointer graph = nullptr;
    GraphExecutable executable = nullptr;
    REQUIRE(graphs.cudaStreamEndCapture(stream, &graph) == success);
    REQUIRE(graphs.cudaGraphInstantiate(&executable, graph, 0) == success);
    CHECK(graphs.cudaGraphDestroy(graph) == success);
    for (int launch = 0; launch < 3; ++launch) CHECK(graphs.cudaGraphLaunch(executable, stream) == success);
    CHECK(runtime.cudaStreamSynchronize(stream) == success);
    CHECK(counts.runs == 4);
    CHECK(counts.drops == 1);
    CHECK(graphs.cudaGraphExecDestroy(executable) == success);
    CHECK(counts.drops == 2);
    CHECK(submit(nullptr, run, drop, &counts) == success);  // without a stream: at once
    CHECK(counts.runs == 5);
    CHECK(counts.drops == 3);
    CHECK(runtime.cudaStreamDestroy(stream) == success);
}

TEST_CASE("a name that nobody here calls says that it is not supported") {
    if (emulated_version() == 0) return;
    CHECK(function_of<int (*)()>("cudaIpcGetMemHandle")() == 801);
}
