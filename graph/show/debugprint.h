// Graphs as indented text.
#pragma once

#include <string>

#include "graph/ir/graph.h"

namespace bitale {

// One line a node: its number, op, type, attributes, name and line; operands are indented below it. A node
// that was shown already is named by its number only. Linear in the size of the graph: indentation ends at a
// fixed depth.
std::string debugprint(const Nodes& roots);
// The same, with a line before each root that says what it is: an output, the new value of a shared variable,
// or a value that is checked.
std::string debugprint(const Graph& graph);

}  // namespace bitale
