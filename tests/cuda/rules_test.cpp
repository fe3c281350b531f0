// The emulator's streams wait as CUDA's may, and its graphs refuse what CUDA forbids.
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "runtime/cuda/emulator/compile.h"
#include "runtime/cuda/emulator/graphs.h"
#include "runtime/cuda/emulator/stream.h"
#include "runtime/cuda/emulator/table.h"
#include "runtime/cuda/graphs.h"
#include "tests/cuda/gpus.h"
#include "tests/support/catch.h"

using namespace bitale::cuda;
using namespace bitale::test;

namespace {

const GraphTable& graphs() { return emulated_graphs(); }
const LoopTable& loops() { return emulated_loops(); }

// A stream, and memory of each kind: 256 bytes.
struct MemoryBench {
    MemoryBench() {
        REQUIRE(runtime().cudaSetDevice(0) == success);
        REQUIRE(runtime().cudaStreamCreateWithFlags(&stream, stream_non_blocking) == success);
        REQUIRE(runtime().cudaMalloc(&device, 256) == success);
        REQUIRE(runtime().cudaMalloc(&other, 256) == success);
        REQUIRE(runtime().cudaMallocHost(&pinned, 256) == success);
        REQUIRE(runtime().cudaHostAlloc(&mapped, 256, host_memory_is_mapped) == success);
        std::memset(pinned, 1, 256);
        std::memset(mapped, 2, 256);
    }
    ~MemoryBench() {
        runtime().cudaFree(device);
        runtime().cudaFree(other);
        runtime().cudaFreeHost(pinned);
        runtime().cudaFreeHost(mapped);
        runtime().cudaStreamDestroy(stream);
    }
    MemoryBench(const MemoryBench&) = delete;
    MemoryBench& operator=(const MemoryBench&) = delete;

    Status upload() { return runtime().cudaMemcpyAsync(device, pinned, 256, host_to_device, stream); }
    Status download() { return runtime().cudaMemcpyAsync(pinned, device, 256, device_to_host, stream); }
    Status begin() { return graphs().cudaStreamBeginCapture(stream, capture_of_this_thread); }
    // A call that a capture does not allow says so and ends the capture.
    void refused(Status status) {
        CHECK(status == error_capture_unsupported);
        GraphPointer graph = nullptr;
        CHECK(graphs().cudaStreamEndCapture(stream, &graph) == error_capture_invalidated);
        CHECK(graph == nullptr);
    }
    int first() const { return static_cast<const char*>(pinned)[0]; }

    Stream stream = nullptr;
    void *device = nullptr, *other = nullptr, *pinned = nullptr, *mapped = nullptr;
};

}  // namespace

TEST_CASE("work waits in its stream until somebody waits for it") {
    MemoryBench b;
    CHECK(b.upload() == success);
    std::memset(b.pinned, 7, 256);  // too early: the copy has not begun
    CHECK(b.download() == success);
    std::memset(b.pinned, 3, 256);
    CHECK(runtime().cudaStreamQuery(b.stream) == error_not_ready);
    CHECK(runtime().cudaStreamSynchronize(b.stream) == success);
    CHECK(b.first() == 3);
    CHECK(runtime().cudaStreamQuery(b.stream) == success);

    Event event = nullptr;
    REQUIRE(runtime().cudaEventCreateWithFlags(&event, event_without_timing) == success);
    CHECK(runtime().cudaMemsetAsync(b.device, 5, 256, b.stream) == success);
    CHECK(b.download() == success);
    CHECK(runtime().cudaEventRecord(event, b.stream) == success);
    CHECK(runtime().cudaMemsetAsync(b.device, 6, 256, b.stream) == success);
    CHECK(b.first() == 3);
    CHECK(runtime().cudaEventSynchronize(event) == success);
    CHECK(b.first() == 5);
    CHECK(runtime().cudaEventDestroy(event) == success);
}

TEST_CASE("copies stay within their memory, and on the side they name") {
    MemoryBench b;
    const int invalid = error_invalid_value;
    CHECK(runtime().cudaMemcpyAsync(b.device, b.pinned, 257, host_to_device, b.stream) == invalid);
    CHECK(runtime().cudaMemcpyAsync(b.pinned, b.device, 256, host_to_device, b.stream) == invalid);
    char here[256] = {};
    CHECK(runtime().cudaMemcpyAsync(b.device, here, 256, host_to_device, b.stream) == invalid);
    CHECK(runtime().cudaMemsetAsync(b.pinned, 0, 256, b.stream) == invalid);
    CHECK(runtime().cudaMemcpyAsync(b.device, b.mapped, 256, device_to_device, b.stream) == success);
    CHECK(runtime().cudaStreamSynchronize(b.stream) == success);
}

TEST_CASE("a thread that has chosen no device is told") {
    MemoryBench b;
    Status status = success;
    std::thread([&] { status = runtime().cudaMemsetAsync(b.device, 0, 1, b.stream); }).join();
    CHECK(status == error_invalid_device);
    std::thread([&] { status = runtime().cudaStreamSynchronize(b.stream); }).join();
    CHECK(status == error_invalid_device);
}

TEST_CASE("what is captured runs at each launch, and not before") {
    MemoryBench b;
    REQUIRE(b.begin() == success);
    CHECK(runtime().cudaMemsetAsync(b.device, 9, 256, b.stream) == success);
    CHECK(b.download() == success);
    int calls = 0;
    submit_library_call(b.stream, [&] { ++calls; });
    GraphPointer graph = nullptr;
    REQUIRE(graphs().cudaStreamEndCapture(b.stream, &graph) == success);
    std::size_t nodes = 0;
    CHECK(graphs().cudaGraphGetNodes(graph, nullptr, &nodes) == success);
    CHECK(nodes == 3);
    GraphExecutable executable = nullptr;
    REQUIRE(graphs().cudaGraphInstantiate(&executable, graph, 0) == success);
    CHECK(graphs().cudaGraphDestroy(graph) == success);
    CHECK(runtime().cudaStreamSynchronize(b.stream) == success);
    CHECK(b.first() == 1);
    for (int launch = 1; launch <= 2; ++launch) {
        CHECK(graphs().cudaGraphLaunch(executable, b.stream) == success);
        CHECK(runtime().cudaStreamSynchronize(b.stream) == success);
        CHECK(b.first() == 9);
        CHECK(calls == launch);
    }
    CHECK(graphs().cudaGraphExecDestroy(executable) == success);
    CHECK(graphs().cudaGraphLaunch(executable, b.stream) == error_invalid_value);
}

TEST_CASE("a capture refuses to wait, to allocate and to record events") {
    MemoryBench b;
    void* block = nullptr;
    Stream stream = nullptr;
    Event event = nullptr;
    REQUIRE(runtime().cudaEventCreateWithFlags(&event, 0) == success);
    const auto during_capture = [&](auto&& call) {
        REQUIRE(b.begin() == success);
        b.refused(call());
    };
    during_capture([&] { return runtime().cudaStreamSynchronize(b.stream); });
    during_capture([&] { return runtime().cudaStreamQuery(b.stream); });
    during_capture([&] { return runtime().cudaMalloc(&block, 16); });
    during_capture([&] { return runtime().cudaFree(b.other); });
    during_capture([&] { return runtime().cudaMallocHost(&block, 16); });
    during_capture([&] { return runtime().cudaEventRecord(event, b.stream); });
    during_capture([&] { return runtime().cudaEventSynchronize(event); });
    during_capture([&] { return runtime().cudaStreamCreateWithFlags(&stream, 0); });
    // Nothing of this has stuck.
    CHECK(b.upload() == success);
    CHECK(runtime().cudaStreamSynchronize(b.stream) == success);
    CHECK(runtime().cudaEventDestroy(event) == success);
}

TEST_CASE("the body of a WHILE node holds device work only, and its handle belongs to one node") {
    MemoryBench b;
    GraphPointer graph = nullptr, body = nullptr;
    ConditionalHandle handle = 0;
    GraphNodeParameters parameters;
    GraphNode node = nullptr;
    GraphExecutable executable = nullptr;
    REQUIRE(loops().cudaGraphCreate(&graph, 0) == success);
    REQUIRE(loops().cudaGraphConditionalHandleCreate(&handle, graph, 1, assign_default_at_launch) == success);
    CHECK(graphs().cudaGraphInstantiate(&executable, graph, 0) == error_invalid_value);  // no node
    CHECK(loops().cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters) == error_invalid_value);
    parameters.handle = handle;
    REQUIRE(loops().cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters) == success);
    CHECK(graphs().cudaGraphInstantiate(&executable, graph, 0) == error_invalid_value);  // no body

    const auto capture = [&] {
        return loops().cudaStreamBeginCaptureToGraph(b.stream, parameters.body[0], nullptr, nullptr, 0,
                                                     capture_of_this_thread);
    };
    REQUIRE(capture() == success);
    b.refused(b.upload());
    REQUIRE(capture() == success);
    int turns = 0;
    CHECK(runtime().cudaMemcpyAsync(b.device, b.mapped, 256, device_to_device, b.stream) == success);
    submit_library_call(b.stream, [&] { set_emulated_condition(handle, ++turns % 5 != 0); });
    REQUIRE(graphs().cudaStreamEndCapture(b.stream, &body) == success);
    CHECK(body == parameters.body[0]);
    REQUIRE(graphs().cudaGraphInstantiate(&executable, graph, 0) == success);
    for (int launch = 1; launch <= 2; ++launch) {
        CHECK(graphs().cudaGraphLaunch(executable, b.stream) == success);
        CHECK(turns == 5 * (launch - 1));
        CHECK(runtime().cudaStreamQuery(b.stream) == error_not_ready);  // one turn
        CHECK(turns == 5 * (launch - 1) + 1);
        CHECK(runtime().cudaStreamSynchronize(b.stream) == success);
        CHECK(turns == 5 * launch);
    }
    CHECK(graphs().cudaGraphExecDestroy(executable) == success);
    CHECK(graphs().cudaGraphDestroy(graph) == success);
    set_emulated_condition(handle, 1);
    CHECK_THAT(condition_problem(), ContainsSubstring("outside of the graph"));
}

TEST_CASE("what a driver cannot do is found out, and said") {
    if (!std::string_view(BITALE_SANITIZE).empty()) return;
    Backend backend;
    backend.runtime = &runtime();
    backend.why_no_graphs = "this runtime knows no graphs";
    const auto ask = [&](Graphs::Most expected, const std::string& why) {
        Gpu gpu(backend, nullptr, "test", "sm_90");
        if (backend.compile) gpu.kernels.prepare(nullptr);
        CHECK(gpu.graphs.most() == expected);
        CHECK_THAT(gpu.graphs.why_not_more(), ContainsSubstring(why));
        // The device goes on.
        DeviceBlock block(gpu.context);
        block.grow(64);
        gpu.context.zero(block.data(), 64);
        gpu.context.synchronize();
    };
    ask(Graphs::Most::off, "knows no graphs");

    GraphTable refusing = graphs();
    refusing.cudaGraphInstantiate = [](GraphExecutable*, GraphPointer, unsigned long long) {
        return error_capture_unsupported;
    };
    backend.graphs = &refusing;
    ask(Graphs::Most::off, "cudaGraphInstantiate fails");

    backend.graphs = &graphs();
    backend.why_no_loops = "this runtime knows no loops";
    ask(Graphs::Most::step, "knows no loops");

    // The kernel of a loop cannot be loaded.
    backend.loops = &loops();
    backend.compile = [](const bitale::Program& program, const std::vector<CudaUnit>& units) {
        return Images{
            {program.name == "repeat" ? "not an object" : compile_emulated({units.at(0).text}).images.at(0)},
            0};
    };
    ask(Graphs::Most::step, "does not load a kernel that calls cudaGraphSetConditional");

    // A driver that puts loading off refuses later, when the kernel is asked for or about.
    backend.compile = [](const bitale::Program&, const std::vector<CudaUnit>& units) {
        return Images{compile_emulated({units.at(0).text}).images, 0};
    };
    RuntimeTable late = runtime();
    backend.runtime = &late;
    late.cudaLibraryGetKernel = [](KernelFunction* kernel, Library library, const char* name) -> Status {
        if (std::string_view(name).find("repeat") != std::string_view::npos) return error_not_found;
        return runtime().cudaLibraryGetKernel(kernel, library, name);
    };
    ask(Graphs::Most::step, "does not load a kernel that calls cudaGraphSetConditional");
    static KernelFunction repeat = nullptr;
    late.cudaLibraryGetKernel = [](KernelFunction* kernel, Library library, const char* name) -> Status {
        const Status status = runtime().cudaLibraryGetKernel(kernel, library, name);
        if (std::string_view(name).find("repeat") != std::string_view::npos) repeat = *kernel;
        return status;
    };
    late.cudaFuncGetAttributes = [](FunctionAttributes* attributes, const void* kernel) -> Status {
        return kernel == repeat ? error_invalid_value : runtime().cudaFuncGetAttributes(attributes, kernel);
    };
    ask(Graphs::Most::step, "does not load a kernel that calls cudaGraphSetConditional");
    backend.runtime = &runtime();

    LoopTable old = loops();
    old.cudaGraphAddNode = [](GraphNode*, GraphPointer, const GraphNode*, const GraphEdge*, std::size_t,
                              GraphNodeParameters*) -> Status { return error_invalid_value; };
    backend.loops = &old;
    backend.compile = [](const bitale::Program&, const std::vector<CudaUnit>& units) {
        return Images{compile_emulated({units.at(0).text}).images, 0};
    };
    ask(Graphs::Most::step, "cudaGraphAddNode fails");
}
