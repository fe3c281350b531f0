// Graphs as indented text.
#pragma once

#include <string>

#include "graph/ir/node.h"

namespace bitale {

// One line a node: its number, op, type, attributes, name and line; operands are indented below it. A node
// that was shown already is named by its number only. Linear in the size of the graph: indentation ends at a
// fixed depth.
std::string debugprint(const Nodes& roots);

}  // namespace bitale
