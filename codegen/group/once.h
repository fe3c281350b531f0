// Groups that a function computes once for each version of the shared variables that they read.
#pragma once

#include "codegen/group/group.h"

namespace bitale {

// Whether a length or an index of the call, which no loop of the nest binds, occurs in the nest.
bool depends_on_call(const Nest& nest);

// Marks the split reductions and sorts that read nothing but constants and shared variables without an
// update, and the numbers that are made of their results: all of it stays until one of the variables changes.
// Lengths and indices change with any call, so groups that depend on them are never marked.
void mark_once(const Values& values, const Graph& graph, Grouping& grouping);

}  // namespace bitale
