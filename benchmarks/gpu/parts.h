// The parts of a GPU that Bitale's executor stands on, each by itself and checked.
#pragma once

#include <memory>

#include "gpu/machine.h"
#include "gpu/record.h"

namespace bench {

// One kernel: compiled, loaded, launched; its result is that of the host.
Json probe_kernel(Machine& machine);
// Launches captured into a graph, which is launched twice.
Json probe_graph(Machine& machine);
// A WHILE node whose body ends the loop after some turns.
Json probe_while(Machine& machine);

// A graph that is ready to be launched.
class Graph {
  public:
    Graph(Machine& machine, bitale::cuda::GraphPointer graph);
    ~Graph();
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    void launch();

  private:
    Machine& machine_;
    bitale::cuda::GraphPointer graph_;
    bitale::cuda::GraphExecutable executable_ = nullptr;
};
// Of what `body` launches.
std::unique_ptr<Graph> captured(Machine& machine, const std::function<void(bitale::cuda::Stream)>& body);

// A loop of any number of turns, each of one kernel.
class WhileLoop {
  public:
    explicit WhileLoop(Machine& machine);
    // Returns when the launch of so many turns is done, with its seconds by events.
    double run(std::int64_t turns);
    std::int64_t turns_done();  // since it was made

  private:
    struct Count {
        std::int64_t left = 0, done = 0;
    };
    Machine& machine_;
    Block count_;
    std::unique_ptr<Graph> graph_;
    std::int64_t done_ = 0;
};

// Launches of it do nothing.
bitale::cuda::KernelFunction empty_kernel(Machine& machine);

}  // namespace bench
