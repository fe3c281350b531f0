// What a step is called in reports: the operations whose results leave it, and the variables that it updates.
#pragma once

#include <string>
#include <vector>

#include "graph/ir/graph.h"

namespace bitale {

class StepTitle {
  public:
    void add(const std::string& operation);
    // By its operation, or by the variable of which it is the new value.
    void add(const Graph& graph, const NodePtr& node);
    // `dot + sum + update of "w" (.m, .v), "b"`: variables whose names continue that of another one stand
    // with it.
    std::string text() const;

  private:
    std::string operations_;
    std::vector<std::string> updated_;
};

}  // namespace bitale
