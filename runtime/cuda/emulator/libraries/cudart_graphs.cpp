// Graphs of an emulated libcudart, as this version declares them.
#include <functional>
#include <memory>

#include "runtime/cuda/emulator/libraries/cudart.h"

using namespace bitale::cuda;

namespace {

const GraphTable& graphs() { return emulated_graphs(); }
const LoopTable& loops() { return emulated_loops(); }
GraphPointer graph_of(void* graph) { return static_cast<GraphPointer>(graph); }

// The emulator's graphs have no edges but those of the order; so nobody may ask for one.
int add_node(void** node, void* graph, std::size_t dependencies, abi::NodeParameters* parameters) {
    if (!parameters || dependencies > 0) return error_invalid_value;
    if (BITALE_EMULATED_CUDA >= 13010 && parameters->context) return error_invalid_context;
    GraphNodeParameters ours;
    ours.type = parameters->type;
    ours.handle = parameters->handle;
    ours.condition = parameters->condition;
    ours.bodies = parameters->bodies;
    const Status status = loops().cudaGraphAddNode(reinterpret_cast<GraphNode*>(node), graph_of(graph),
                                                   nullptr, nullptr, 0, &ours);
    if (status == success) parameters->body = reinterpret_cast<void**>(ours.body);
    return status;
}

}  // namespace

EMULATED int cudaStreamBeginCapture(void* stream, int mode) {
    return graphs().cudaStreamBeginCapture(static_cast<Stream>(stream), static_cast<CaptureMode>(mode));
}
EMULATED int cudaStreamEndCapture(void* stream, void** graph) {
    return graphs().cudaStreamEndCapture(static_cast<Stream>(stream), reinterpret_cast<GraphPointer*>(graph));
}
EMULATED int cudaGraphGetNodes(void* graph, void** nodes, std::size_t* count) {
    return graphs().cudaGraphGetNodes(graph_of(graph), reinterpret_cast<GraphNode*>(nodes), count);
}
EMULATED int cudaGraphInstantiate(void** executable, void* graph, unsigned long long flags) {
    return graphs().cudaGraphInstantiate(reinterpret_cast<GraphExecutable*>(executable), graph_of(graph),
                                         flags);
}
EMULATED int cudaGraphUpload(void* executable, void* stream) {
    return graphs().cudaGraphUpload(static_cast<GraphExecutable>(executable), static_cast<Stream>(stream));
}
EMULATED int cudaGraphLaunch(void* executable, void* stream) {
    return graphs().cudaGraphLaunch(static_cast<GraphExecutable>(executable), static_cast<Stream>(stream));
}
EMULATED int cudaGraphExecDestroy(void* executable) {
    return graphs().cudaGraphExecDestroy(static_cast<GraphExecutable>(executable));
}
EMULATED int cudaGraphDestroy(void* graph) { return graphs().cudaGraphDestroy(graph_of(graph)); }

// ---- loops in graphs ----

EMULATED int cudaGraphCreate(void** graph, unsigned flags) {
    return loops().cudaGraphCreate(reinterpret_cast<GraphPointer*>(graph), flags);
}
EMULATED int cudaGraphConditionalHandleCreate(unsigned long long* handle, void* graph, unsigned at_launch,
                                              unsigned flags) {
    return loops().cudaGraphConditionalHandleCreate(handle, graph_of(graph), at_launch, flags);
}
#if BITALE_EMULATED_CUDA >= 13010
// The emulator makes no execution contexts, so every one is foreign.
EMULATED int cudaGraphConditionalHandleCreate_v2(unsigned long long* handle, void* graph, void* context,
                                                 unsigned at_launch, unsigned flags) {
    if (context) return error_invalid_context;
    return cudaGraphConditionalHandleCreate(handle, graph, at_launch, flags);
}
#endif

#if BITALE_EMULATED_CUDA < 13000
EMULATED int cudaGraphAddNode(void** node, void* graph, void* const* /*dependencies*/, std::size_t count,
                              abi::NodeParameters* parameters) {
    return add_node(node, graph, count, parameters);
}
EMULATED int cudaGraphAddNode_v2(void** node, void* graph, void* const* /*dependencies*/,
                                 const void* /*edges*/, std::size_t count, abi::NodeParameters* parameters) {
#else
EMULATED int cudaGraphAddNode(void** node, void* graph, void* const* /*dependencies*/, const void* /*edges*/,
                              std::size_t count, abi::NodeParameters* parameters) {
#endif
    return add_node(node, graph, count, parameters);
}

EMULATED int cudaStreamBeginCaptureToGraph(void* stream, void* graph, void* const* /*dependencies*/,
                                           const void* /*edges*/, std::size_t count, int mode) {
    return loops().cudaStreamBeginCaptureToGraph(static_cast<Stream>(stream), graph_of(graph), nullptr,
                                                 nullptr, count, static_cast<CaptureMode>(mode));
}

// ---- beside CUDA's ----

// Work of another emulated library, on the CPU: into the stream, or the graph that is captured there, where
// it runs as often as the graph is launched. `drop` is called once, when nothing can run the work any more;
// also where the stream does not take it. Returns a status of CUDA.
EMULATED int bitale_emulated_submit(void* stream, void (*run)(void* data), void (*drop)(void* data),
                                    void* data) {
    const std::shared_ptr<void> kept(data, [drop](void* d) {
        if (drop) drop(d);
    });
    return submit_work(static_cast<Stream>(stream), [run, kept] { run(kept.get()); });
}
