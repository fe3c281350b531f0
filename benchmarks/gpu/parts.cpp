#include "gpu/parts.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

using namespace bitale::cuda;

namespace bench {

namespace {

constexpr const char* axpy_text = R"(
struct probe_axpy_arguments { const float* x; float* y; long long count; float a; };
extern "C" __global__ __launch_bounds__(256) void probe_axpy(const probe_axpy_arguments p) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < p.count) p.y[i] = __fmaf_rn(p.a, p.x[i], p.y[i]);
}
)";

constexpr const char* empty_text = R"(
struct probe_empty_arguments { void* nothing; };
extern "C" __global__ __launch_bounds__(32) void probe_empty(const probe_empty_arguments p) {}
)";

constexpr const char* turn_text = R"(
extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
struct probe_turn_arguments { long long* count; unsigned long long handle; };
extern "C" __global__ __launch_bounds__(32) void probe_turn(const probe_turn_arguments p) {
    if (threadIdx.x != 0) return;
    const long long left = p.count[0] - 1;
    p.count[0] = left;
    p.count[1] = p.count[1] + 1;
    cudaGraphSetConditional(p.handle, left > 0 ? 1u : 0u);
}
)";

struct AxpyArguments {
    const float* x;
    float* y;
    long long count;
    float a;
};
struct TurnArguments {
    void* count;
    ConditionalHandle handle;
};

// y += a x, so often as it is launched.
class Axpy {
  public:
    static constexpr int threads = 256;
    static constexpr std::int64_t count = 10'007;  // the last block is not full

    explicit Axpy(Machine& machine)
        : machine_(machine),
          kernel_(machine.kernel("probe_axpy", axpy_text)),
          x_(machine.block(values(1))),
          y_(machine.block(values(2))) {}

    void launch(Stream stream) {
        const AxpyArguments arguments{x_.floats(), y_.floats(), count, 0.3F};
        machine_.launch(kernel_, (count + threads - 1) / threads, threads, &arguments, stream);
    }
    // Throws Wrong unless it ran so often.
    void verify(int times) {
        const std::vector<float> x = values(1), got = machine_.floats(y_, count);
        std::vector<float> y = values(2);
        for (int t = 0; t < times; ++t)
            for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::fma(0.3F, x[i], y[i]);
        for (std::size_t i = 0; i < y.size(); ++i)
            if (got[i] != y[i])
                throw Wrong(fmt::format("element {} is {} after {} launches, and should be {}", i, got[i],
                                        times, y[i]),
                            {});
    }

  private:
    static std::vector<float> values(int kind) {
        std::vector<float> v(count);
        for (std::size_t i = 0; i < v.size(); ++i)
            v[i] = static_cast<float>(static_cast<int>(i * 37 % 101) - 50) / static_cast<float>(7 * kind);
        return v;
    }
    Machine& machine_;
    KernelFunction kernel_;
    Block x_, y_;
};

}  // namespace

Json probe_kernel(Machine& machine) {
    Axpy axpy(machine);
    axpy.launch(machine.stream());
    axpy.verify(1);
    return {{"elements", Axpy::count}};
}

Json probe_graph(Machine& machine) {
    machine.graphs();  // or none
    Axpy axpy(machine);
    const auto graph = captured(machine, [&](Stream stream) {
        axpy.launch(stream);
        axpy.launch(stream);
    });
    axpy.verify(0);
    graph->launch();
    graph->launch();
    axpy.verify(4);
    return {{"nodes", 2}, {"launches", 2}};
}

Json probe_while(Machine& machine) {
    WhileLoop loop(machine);
    for (const std::int64_t turns : {7, 1}) loop.run(turns);
    const std::int64_t done = loop.turns_done();
    if (done != 8) throw Wrong(fmt::format("7 turns and 1 turn were {}", done), {{"turns", done}});
    return {{"turns", done}};
}

Graph::Graph(Machine& machine, GraphPointer graph) : machine_(machine), graph_(graph) {
    machine.require(machine.graphs().cudaGraphInstantiate(&executable_, graph_, 0), "cudaGraphInstantiate");
    machine.require(machine.graphs().cudaGraphUpload(executable_, machine.stream()), "cudaGraphUpload");
}

Graph::~Graph() {
    machine_.runtime().cudaStreamSynchronize(machine_.stream());
    machine_.graphs().cudaGraphExecDestroy(executable_);
    machine_.graphs().cudaGraphDestroy(graph_);
}

void Graph::launch() {
    machine_.require(machine_.graphs().cudaGraphLaunch(executable_, machine_.stream()), "cudaGraphLaunch");
}

std::unique_ptr<Graph> captured(Machine& machine, const std::function<void(Stream)>& body) {
    const GraphTable& table = machine.graphs();
    machine.require(table.cudaStreamBeginCapture(machine.stream(), capture_of_this_thread),
                    "cudaStreamBeginCapture");
    body(machine.stream());
    GraphPointer graph = nullptr;
    machine.require(table.cudaStreamEndCapture(machine.stream(), &graph), "cudaStreamEndCapture");
    return std::make_unique<Graph>(machine, graph);
}

WhileLoop::WhileLoop(Machine& machine) : machine_(machine), count_(machine, sizeof(Count)) {
    const LoopTable& table = machine.loops();
    const KernelFunction turn = machine.kernel("probe_turn", turn_text);
    machine.fill(count_.data(), 0, sizeof(Count));
    GraphPointer graph = nullptr;
    machine.require(table.cudaGraphCreate(&graph, 0), "cudaGraphCreate");
    ConditionalHandle handle = 0;
    machine.require(table.cudaGraphConditionalHandleCreate(&handle, graph, 1, assign_default_at_launch),
                    "cudaGraphConditionalHandleCreate");
    GraphNodeParameters parameters;
    parameters.handle = handle;
    GraphNode node = nullptr;
    machine.require(table.cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &parameters),
                    "cudaGraphAddNode");
    machine.require(table.cudaStreamBeginCaptureToGraph(machine.stream(), parameters.body[0], nullptr,
                                                        nullptr, 0, capture_of_this_thread),
                    "cudaStreamBeginCaptureToGraph");
    const TurnArguments arguments{count_.data(), handle};
    machine.launch(turn, 1, 32, &arguments);
    GraphPointer body = nullptr;  // the node's own
    machine.require(machine.graphs().cudaStreamEndCapture(machine.stream(), &body), "cudaStreamEndCapture");
    graph_ = std::make_unique<Graph>(machine, graph);
}

double WhileLoop::run(std::int64_t turns) {
    const Count count{turns, done_};
    machine_.upload(count_.data(), &count, sizeof count);
    const double seconds = machine_.seconds([&] { graph_->launch(); });
    turns_done();
    return seconds;
}

std::int64_t WhileLoop::turns_done() {
    Count count;
    machine_.download(&count, count_.data(), sizeof count);
    return done_ = count.done;
}

KernelFunction empty_kernel(Machine& machine) { return machine.kernel("probe_empty", empty_text); }

}  // namespace bench
