// Work on the GPU as one launch: a step captured into a graph, a loop as a graph with a WHILE node.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "graph/base/options.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/loop_kernels.h"

namespace bitale::cuda {

// Ready to be launched. What it reads and writes must outlive it.
class LaunchGraph {
  public:
    // Takes the graph over; `words` and `note` for errors. Throws CaptureError.
    LaunchGraph(Context& context, GraphPointer graph, std::size_t nodes, std::string words, LaunchNote note);
    ~LaunchGraph();
    LaunchGraph(const LaunchGraph&) = delete;
    LaunchGraph& operator=(const LaunchGraph&) = delete;

    void launch();  // into the context's stream
    std::size_t nodes() const { return nodes_; }

  private:
    Context& context_;
    GraphExecutable executable_ = nullptr;
    const std::size_t nodes_;
    const std::string words_;
    const LaunchNote note_;
};

class Graphs {
  public:
    using Most = Options::Graphs;

    Graphs(Context& context, AllLoopKernels& kernels) : context_(context), kernels_(kernels) {}
    Graphs(const Graphs&) = delete;
    Graphs& operator=(const Graphs&) = delete;

    // The most that one launch may hold here: what the driver can, found out at the first question, and what
    // the option `graphs` allows.
    Most most();
    std::string why_not_more();  // empty where a loop is one launch

    // What `body` puts into its stream. It may launch, copy on the GPU and call libraries, nothing else.
    // `words`: of the graph, for errors of its launches, and `program`, if it is a step's. Throws
    // CaptureError; nothing has run then.
    std::unique_ptr<LaunchGraph> capture(std::string words, std::shared_ptr<const Program> program,
                                         const std::function<void(Stream)>& body);
    // The same again and again, until a kernel of the body sets the handle to 0.
    std::unique_ptr<LaunchGraph> capture_loop(std::string words, std::shared_ptr<const Program> program,
                                              const std::function<void(Stream, ConditionalHandle)>& body);

  private:
    void probe();
    std::size_t nodes_of(GraphPointer graph);
    void fill(const std::function<void(Stream)>& body, GraphPointer& captured);

    Context& context_;
    AllLoopKernels& kernels_;
    std::optional<Most> able_;
    std::string why_not_able_;
};

// What a device makes once for all functions.
struct Gpu {
    Gpu(const Backend& backend, const void* owner, const std::string& name, const std::string& target)
        : context(backend, owner, name), kernels(context, target), graphs(context, kernels) {}
    Context context;
    AllLoopKernels kernels;
    Graphs graphs;
};

}  // namespace bitale::cuda
