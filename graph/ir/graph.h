// Graph: what one compiled function computes, after givens are replaced.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

struct SharedUpdate {
    SharedPtr target;
    NodePtr value;
    Where where;
};

struct Graph {
    std::string name;
    Nodes inputs;  // input leaves, in the order of the arguments
    Nodes outputs;
    std::vector<SharedUpdate> updates;  // values read the old state
    std::vector<Check> checks;
    std::set<std::string> held_back;  // rules that would have applied but for math=strict
    std::string dump_folder;          // where passes leave the graph they made (BITALE_DUMP), or empty

    Nodes roots() const;                 // outputs, then update values, then checked values
    void set_roots(const Nodes& roots);  // in the same order
};

// Every op's checks for the nodes of the graph, equal ones once, replace graph.checks.
void collect_checks(Graph& graph);

}  // namespace bitale
