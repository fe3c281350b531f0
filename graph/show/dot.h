// Graphs as Graphviz text.
#pragma once

#include <string>

#include "graph/ir/node.h"

namespace bitale {

// A digraph for the program `dot`: a box for each node, leaves rounded, an arrow from each operand to its
// user, numbered where the order of the operands matters. Meant for graphs of some hundred nodes: Graphviz
// cannot lay out more.
std::string graphviz(const Nodes& roots);

}  // namespace bitale
