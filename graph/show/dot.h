// Graphs as Graphviz text.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

// A digraph for the program `dot`: a box for each node, leaves rounded, an arrow from each operand to its
// user, numbered where the order of the operands matters. Meant for graphs of some hundred nodes: Graphviz
// cannot lay out more.
std::string graphviz(const Nodes& roots);

// Frames around nodes, each with a title; nodes that are in none stay outside.
struct Clusters {
    std::vector<std::string> titles;
    std::unordered_map<const Node*, int> of;
    std::vector<std::string> roots{};  // what becomes of each root; those that are not named are outputs
};
std::string graphviz(const Nodes& roots, const Clusters& clusters);

}  // namespace bitale
