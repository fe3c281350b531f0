// Layout: the order in which the axes of a stored value lie in memory, chosen by who walks along them.
#pragma once

#include "codegen/group/values.h"

namespace bitale {

// Permutes the axes of stored values, in their own nests and in every read of them, so that the axis along
// which most accesses move by one element comes last. The first axis stays first: tasks run over it. Results,
// checked values and what a library reads or writes keep their order.
void choose_layouts(Values& values, const Graph& graph);

}  // namespace bitale
