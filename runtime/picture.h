// Pictures of graphs: text for Graphviz, and what that makes of it.
#pragma once

#include <string>

#include "bitale/function.h"

namespace bitale {

// The optimised graph of a compiled state, the nodes of each kernel in one frame; else the graph as it is.
std::string picture_of(const Function::State& state);

// SVG by the program `dot`, which gets so many seconds. Throws Error where it is not there, fails, or takes
// longer.
std::string svg_of(const std::string& dot, int seconds = 60);

}  // namespace bitale
