// A small part of a function's graph as a graph of its own, to be compiled and measured alone.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "graph/ir/graph.h"

namespace bitale {

// How values of four axes lie that the function computes elsewhere: as they are written, which is what
// libraries want, or with their channels last, as generated convolutions have them (codegen/group/layout.h).
enum class Maps : std::uint8_t { plain, channels_last };

// What `root` is computed from, down to values that lie in memory: those become inputs, and so do variables
// and long constants. Values far from the root become inputs, too, so that an excerpt stays small.
Graph excerpt_of(const NodePtr& root, const std::function<bool(const NodePtr&)>& in_memory, Maps maps);

// Of its shapes and attributes.
std::set<std::uint64_t> symbols_of(const Graph& excerpt);
// Whether every length is then the longest it can be, as that of a minibatch which is not the last one.
bool are_longest(const Graph& excerpt, const Substitution& numbers);

// Ops, operands, types and attributes for given numbers of all symbols: equal texts take equally long. Names,
// lines and the values of constants are left out.
std::string text_of_excerpt(const Graph& excerpt, const Substitution& numbers);

}  // namespace bitale
