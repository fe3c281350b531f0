// What both oracles do first: leaves get their values, so that every length is a number.
#pragma once

#include <unordered_map>

#include "graph/ir/graph.h"

namespace bitale {

using LeafValues = std::unordered_map<const Node*, Array>;

// The roots with constants in place of the inputs. Throws GraphError for an input without a value, TypeError
// and ShapeError for a value that does not fit.
Nodes with_leaves(const Nodes& roots, const LeafValues& leaves);

// The value that a shared variable has now; the caller may hold its lock.
Array current_value(const SharedPtr& shared);

[[noreturn]] void out_of_range(const Check& check, const std::string& value, std::int64_t element);

}  // namespace bitale
