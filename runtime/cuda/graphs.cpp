#include "runtime/cuda/graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "graph/base/log.h"
#include "runtime/cuda/outside.h"

namespace bitale::cuda {

namespace {

// Errors of making a graph leave the device as it was.
void require(Context& context, Status status, const char* what) {
    if (status != success)
        throw CaptureError(fmt::format("{} fails: {} ({})", what,
                                       context.runtime().cudaGetErrorString(status),
                                       context.runtime().cudaGetErrorName(status)));
}

// A graph that is destroyed when something goes wrong with it.
class GraphOwner {
  public:
    explicit GraphOwner(const GraphTable& table) : table_(table) {}
    ~GraphOwner() {
        if (graph) table_.cudaGraphDestroy(graph);
    }
    GraphOwner(const GraphOwner&) = delete;
    GraphOwner& operator=(const GraphOwner&) = delete;
    GraphPointer graph = nullptr;

  private:
    const GraphTable& table_;
};

}  // namespace

LaunchGraph::LaunchGraph(Context& context, GraphPointer graph, std::size_t nodes, std::string words,
                         LaunchNote note)
    : context_(context), nodes_(nodes), words_(std::move(words)), note_(std::move(note)) {
    const GraphTable& table = *context_.backend().graphs;
    require(context_, table.cudaGraphInstantiate(&executable_, graph, 0), "cudaGraphInstantiate");
    if (const Status status = table.cudaGraphUpload(executable_, context_.stream()); status != success) {
        table.cudaGraphExecDestroy(executable_);
        require(context_, status, "cudaGraphUpload");
    }
}

LaunchGraph::~LaunchGraph() {
    if (context_.is_broken()) return;
    const RuntimeTable& runtime = context_.runtime();
    context_.select();
    runtime.cudaStreamSynchronize(context_.stream());  // it may be running
    context_.backend().graphs->cudaGraphExecDestroy(executable_);
}

void LaunchGraph::launch() {
    const Status status = outside::refused(outside::Door::launch)
                              ? error_out_of_memory
                              : context_.backend().graphs->cudaGraphLaunch(executable_, context_.stream());
    context_.launched(
        status, context_.stream(), [this] { return words_; }, note_);
}

std::size_t Graphs::nodes_of(GraphPointer graph) {
    std::size_t count = 0;
    require(context_, context_.backend().graphs->cudaGraphGetNodes(graph, nullptr, &count),
            "cudaGraphGetNodes");
    return count;
}

// A capture has begun; it ends here, whatever happens.
void Graphs::fill(const std::function<void(Stream)>& body, GraphPointer& captured) {
    const GraphTable& table = *context_.backend().graphs;
    std::string problem;
    try {
        body(context_.capture_stream());
    } catch (const std::exception& e) {
        problem = e.what();
    }
    const Status status = table.cudaStreamEndCapture(context_.capture_stream(), &captured);
    if (!problem.empty()) throw CaptureError("a step cannot be captured: " + problem);
    require(context_, status, "cudaStreamEndCapture");
}

std::unique_ptr<LaunchGraph> Graphs::capture(std::string words, std::shared_ptr<const Program> program,
                                             const std::function<void(Stream)>& body) {
    const GraphTable& table = *context_.backend().graphs;
    GraphOwner owner(table);
    require(context_, table.cudaStreamBeginCapture(context_.capture_stream(), capture_of_this_thread),
            "cudaStreamBeginCapture");
    fill(body, owner.graph);
    return std::make_unique<LaunchGraph>(context_, owner.graph, nodes_of(owner.graph), std::move(words),
                                         LaunchNote{std::move(program), nullptr, 0, "a graph"});
}

std::unique_ptr<LaunchGraph> Graphs::capture_loop(
    std::string words, std::shared_ptr<const Program> program,
    const std::function<void(Stream, ConditionalHandle)>& body) {
    const LoopTable& table = *context_.backend().loops;
    GraphOwner owner(*context_.backend().graphs);
    require(context_, table.cudaGraphCreate(&owner.graph, 0), "cudaGraphCreate");
    // Every launch begins with one turn of the loop.
    ConditionalHandle handle = 0;
    require(context_,
            table.cudaGraphConditionalHandleCreate(&handle, owner.graph, 1, assign_default_at_launch),
            "cudaGraphConditionalHandleCreate");
    GraphNodeParameters parameters;
    parameters.handle = handle;
    GraphNode node = nullptr;
    require(context_, table.cudaGraphAddNode(&node, owner.graph, nullptr, nullptr, 0, &parameters),
            "cudaGraphAddNode");
    GraphPointer inside = parameters.body[0];
    require(context_,
            table.cudaStreamBeginCaptureToGraph(context_.capture_stream(), inside, nullptr, nullptr, 0,
                                                capture_of_this_thread),
            "cudaStreamBeginCaptureToGraph");
    GraphPointer captured = nullptr;  // the same graph; it belongs to the node
    fill([&](Stream stream) { body(stream, handle); }, captured);
    return std::make_unique<LaunchGraph>(context_, owner.graph, nodes_of(inside), std::move(words),
                                         LaunchNote{std::move(program), nullptr, 0, "a graph with a loop"});
}

// Makes a small graph of each kind; launches none.
void Graphs::probe() {
    const Backend& backend = context_.backend();
    Most able = Most::off;
    std::string why_not_more;
    try {
        if (!backend.graphs) throw CaptureError(backend.why_no_graphs);
        DeviceBlock block(context_);
        block.grow(static_cast<std::int64_t>(sizeof(LoopState)));
        capture("a graph", nullptr, [&](Stream stream) {
            context_.check(context_.runtime().cudaMemsetAsync(block.data(), 0, 1, stream), "cudaMemsetAsync");
        });
        able = Most::step;
        if (!backend.loops) throw CaptureError(backend.why_no_loops);
        const LoopKernels& kernels = kernels_.latest();
        if (!kernels.why_no_repeat().empty()) throw CaptureError(kernels.why_no_repeat());
        capture_loop("a loop", nullptr, [&](Stream stream, ConditionalHandle handle) {
            AdvanceArguments arguments;
            arguments.state = block.data();
            arguments.handle = handle;
            kernels.launch(LoopKernel::repeat, &arguments, 1, stream, [] { return std::string("a loop"); },
                           {});
        });
        able = Most::loop;
    } catch (const CaptureError& e) {
        why_not_more = e.what();
    }
    why_not_able_ = std::move(why_not_more);
    able_ = able;
    if (!why_not_able_.empty()) log(1, "graphs of CUDA: " + why_not_able_);
}

Graphs::Most Graphs::most() {
    if (options().graphs == Most::off || options().wait_for_launches) return Most::off;
    if (!able_) probe();
    return std::min(*able_, options().graphs);
}

std::string Graphs::why_not_more() {
    const Most most = this->most();
    if (most == Most::loop) return "";
    if (options().wait_for_launches) return options().compare_launches ? "launches=compare" : "launches=wait";
    if (most == options().graphs) return most == Most::off ? "graphs=off" : "graphs=step";
    return why_not_able_;
}

}  // namespace bitale::cuda
