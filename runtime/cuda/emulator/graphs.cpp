#include "runtime/cuda/emulator/graphs.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>
#include <vector>

#include "runtime/cuda/emulator/entry.h"
#include "runtime/cuda/emulator/stream.h"

namespace bitale::cuda {

namespace {

struct Executable {
    std::shared_ptr<EmulatedGraph> graph;
    std::map<ConditionalHandle, unsigned> values;
};

// Those that the caller owns; bodies belong to their nodes.
struct Registry {
    std::mutex mutex;
    std::map<const void*, std::shared_ptr<EmulatedGraph>> graphs, bodies;
    std::map<const void*, std::vector<GraphPointer>> body_lists;  // what cudaGraphAddNode hands out
    std::map<const void*, std::shared_ptr<Executable>> executables;
    ConditionalHandle next_handle = 1;
};
Registry& registry() {
    static Registry& r = *new Registry;
    return r;
}

thread_local Executable* running = nullptr;
thread_local ConditionalHandle wrong_handle = 0;

std::shared_ptr<EmulatedGraph> find(GraphPointer graph) {
    Registry& r = registry();
    for (const auto* list : {&r.graphs, &r.bodies})
        if (const auto at = list->find(graph); at != list->end()) return at->second;
    return nullptr;
}

GraphPointer pointer_to(const EmulatedGraph* graph) {
    return reinterpret_cast<GraphPointer>(const_cast<EmulatedGraph*>(graph));
}

// ---- replay ----

bool ends(const Outcome& outcome) { return !outcome.problem.empty() || outcome.hangs; }

Outcome run_to_end(const EmulatedGraph& graph);

// One turn of a loop, or false when its condition does not hold.
bool turn(const Work& node, Outcome& outcome) {
    if (running->values.at(node.handle) == 0) return false;
    outcome = run_to_end(*node.body);
    return true;
}

Outcome run_to_end(const EmulatedGraph& graph) {
    for (const Work& node : graph.nodes) {
        Outcome outcome;
        if (node.kind == Work::Kind::condition)
            while (!ends(outcome) && turn(node, outcome)) continue;
        else
            outcome = node.run();
        if (ends(outcome)) return outcome;
    }
    return {};
}

// A launch, in pieces: a loop on the outermost level gives way after each turn.
class Launch {
  public:
    explicit Launch(std::shared_ptr<Executable> executable) : executable_(std::move(executable)) {}

    Outcome piece() {
        struct Running {
            explicit Running(Executable* executable) { running = executable; }
            ~Running() { running = nullptr; }
        } const mine(executable_.get());
        return run();
    }

  private:
    Outcome run() {
        const EmulatedGraph& graph = *executable_->graph;
        if (!std::exchange(begun_, true))
            for (const auto& [handle, condition] : graph.conditions)
                if (condition.assigned) executable_->values[handle] = condition.at_launch;
        for (; at_ < graph.nodes.size(); ++at_) {
            const Work& node = graph.nodes[at_];
            Outcome outcome;
            if (node.kind == Work::Kind::condition)
                outcome.more = turn(node, outcome);
            else
                outcome = node.run();
            if (ends(outcome) || outcome.more) return outcome;
        }
        return {};
    }

    std::shared_ptr<Executable> executable_;
    std::size_t at_ = 0;
    bool begun_ = false;
};

// ---- building ----

// A copy that later changes of the graph do not reach; null where the graph breaks a rule.
std::shared_ptr<EmulatedGraph> snapshot(const EmulatedGraph& graph, std::set<ConditionalHandle>& unused) {
    auto copy = std::make_shared<EmulatedGraph>(graph);
    for (Work& node : copy->nodes) {
        if (node.kind != Work::Kind::condition) continue;
        // One node for each handle, and a body that can set it.
        if (unused.erase(node.handle) == 0 || node.body->nodes.empty()) return nullptr;
        node.body = snapshot(*node.body, unused);
        if (!node.body) return nullptr;
    }
    return copy;
}

Status instantiate(GraphExecutable* executable, GraphPointer graph, unsigned long long) {
    if (const Status refused = refuse_while_capturing(); refused != success) return refused;
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const std::shared_ptr<EmulatedGraph> source = find(graph);
    if (!source || source->is_body) return error_invalid_value;
    std::set<ConditionalHandle> unused;
    for (const auto& [handle, condition] : source->conditions) unused.insert(handle);
    auto made = std::make_shared<Executable>();
    made->graph = snapshot(*source, unused);
    if (!made->graph || !unused.empty()) return error_invalid_value;
    for (const auto& [handle, condition] : source->conditions) made->values[handle] = condition.at_launch;
    r.executables.emplace(made.get(), made);
    *executable = reinterpret_cast<GraphExecutable>(made.get());
    return success;
}

std::shared_ptr<Executable> find(GraphExecutable executable) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto at = r.executables.find(executable);
    return at == r.executables.end() ? nullptr : at->second;
}

Status launch(GraphExecutable executable, Stream stream) {
    std::shared_ptr<Executable> found = find(executable);
    if (!found || !stream) return error_invalid_value;
    if (const Status status = stream_of(stream).chosen(); status != success) return status;
    Work work;
    work.kind = Work::Kind::graph;
    work.run = [run = std::make_shared<Launch>(std::move(found))] { return run->piece(); };
    return stream_of(stream).submit(std::move(work));
}

void forget_bodies(const EmulatedGraph& graph) {
    Registry& r = registry();
    for (const Work& node : graph.nodes) {
        if (node.kind != Work::Kind::condition) continue;
        forget_bodies(*node.body);
        r.bodies.erase(node.body.get());
        r.body_lists.erase(node.body.get());
    }
}

Status destroy(GraphPointer graph) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const auto at = r.graphs.find(graph);
    if (at == r.graphs.end()) return error_invalid_value;
    forget_bodies(*at->second);
    r.graphs.erase(at);
    return success;
}

Status add_to_registry(std::shared_ptr<EmulatedGraph> graph, GraphPointer* pointer) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const GraphPointer made = pointer_to(graph.get());
    if (!graph->is_body) r.graphs.emplace(graph.get(), std::move(graph));
    *pointer = made;
    return success;
}

Status add_node(GraphNode* node, GraphPointer graph, const GraphNode*, const GraphEdge*, std::size_t count,
                GraphNodeParameters* parameters) {
    constexpr int conditional_node = 13, while_loop = 1;
    if (const Status refused = refuse_while_capturing(); refused != success) return refused;
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const std::shared_ptr<EmulatedGraph> to = find(graph);
    if (!to || count > 0 || !to->nodes.empty() || parameters->type != conditional_node ||
        parameters->condition != while_loop || parameters->bodies != 1 ||
        !to->conditions.contains(parameters->handle))
        return error_invalid_value;
    Work work;
    work.kind = Work::Kind::condition;
    work.handle = parameters->handle;
    work.body = std::make_shared<EmulatedGraph>();
    work.body->is_body = true;
    const EmulatedGraph* body = work.body.get();
    to->nodes.reserve(1);
    std::vector<GraphPointer> only{pointer_to(body)};
    const auto list = r.body_lists.emplace(body, std::move(only)).first;
    try {
        r.bodies.emplace(body, work.body);
    } catch (const std::bad_alloc&) {
        r.body_lists.erase(list);
        throw;
    }
    parameters->body = list->second.data();
    *node = reinterpret_cast<GraphNode>(list->second.data());
    to->nodes.push_back(std::move(work));
    return success;
}

Status new_handle(ConditionalHandle* handle, GraphPointer graph, unsigned at_launch, unsigned flags) {
    Registry& r = registry();
    const std::lock_guard lock(r.mutex);
    const std::shared_ptr<EmulatedGraph> of = find(graph);
    if (!of || of->is_body) return error_invalid_value;
    *handle = r.next_handle++;
    of->conditions[*handle] = {at_launch, flags == assign_default_at_launch};
    return success;
}

}  // namespace

void set_emulated_condition(ConditionalHandle handle, unsigned value) {
    if (!running || !running->values.contains(handle)) {
        wrong_handle = handle;
        return;
    }
    running->values[handle] = value;
}

std::string condition_problem() {
    const ConditionalHandle wrong = std::exchange(wrong_handle, 0);
    if (wrong == 0) return "";
    return fmt::format("cudaGraphSetConditional({}) outside of the graph of that handle", wrong);
}

const GraphTable& emulated_graphs() {
    static GraphTable table = [] {  // tests put functions of their own around these
        GraphTable t;
        t.cudaStreamBeginCapture = [](Stream stream, CaptureMode) {
            return stream ? stream_of(stream).begin_capture(std::make_shared<EmulatedGraph>())
                          : error_capture_unsupported;
        };
        t.cudaStreamEndCapture = [](Stream stream, GraphPointer* graph) {
            std::shared_ptr<EmulatedGraph> captured;
            *graph = nullptr;
            if (!stream) return error_invalid_value;
            const Status status = stream_of(stream).end_capture(captured);
            return status == success ? add_to_registry(std::move(captured), graph) : status;
        };
        t.cudaGraphGetNodes = [](GraphPointer graph, GraphNode* nodes, std::size_t* count) {
            Registry& r = registry();
            const std::lock_guard lock(r.mutex);
            const std::shared_ptr<EmulatedGraph> of = find(graph);
            if (!of || nodes) return error_invalid_value;
            return *count = of->nodes.size(), success;
        };
        t.cudaGraphInstantiate = instantiate;
        t.cudaGraphUpload = [](GraphExecutable executable, Stream) {
            return find(executable) ? success : error_invalid_value;
        };
        t.cudaGraphLaunch = launch;
        t.cudaGraphExecDestroy = [](GraphExecutable executable) {
            Registry& r = registry();
            const std::lock_guard lock(r.mutex);
            return r.executables.erase(executable) == 1 ? success : error_invalid_value;
        };
        t.cudaGraphDestroy = destroy;
#define BITALE_ENTRY(result, name, arguments) Entry<&GraphTable::name>::put(t);
        BITALE_CUDA_GRAPHS(BITALE_ENTRY)
#undef BITALE_ENTRY
        return t;
    }();
    return table;
}

const LoopTable& emulated_loops() {
    static const LoopTable table = [] {
        LoopTable t;
        t.cudaGraphCreate = [](GraphPointer* graph, unsigned) {
            return add_to_registry(std::make_shared<EmulatedGraph>(), graph);
        };
        t.cudaGraphConditionalHandleCreate = new_handle;
        t.cudaGraphAddNode = add_node;
        t.cudaStreamBeginCaptureToGraph = [](Stream stream, GraphPointer graph, const GraphNode*,
                                             const GraphEdge*, std::size_t count, CaptureMode) {
            std::shared_ptr<EmulatedGraph> into;
            {
                Registry& r = registry();
                const std::lock_guard lock(r.mutex);
                into = find(graph);
            }
            if (!into || !stream || count > 0 || !into->nodes.empty()) return error_invalid_value;
            return stream_of(stream).begin_capture(std::move(into));
        };
#define BITALE_ENTRY(result, name, arguments) Entry<&LoopTable::name>::put(t);
        BITALE_CUDA_LOOPS(BITALE_ENTRY)
#undef BITALE_ENTRY
        return t;
    }();
    return table;
}

}  // namespace bitale::cuda
