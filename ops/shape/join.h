// Views with several sources or a border: concat and pad.
#pragma once

#include <cstddef>
#include <vector>

#include "graph/ir/node.h"

namespace bitale {

const Op* concat_op();  // parts...; "axis" (int64)
// Where each part begins along the axis, and last where all end.
std::vector<Int> starts_of_parts(const Nodes& parts, std::size_t axis);
const Op* pad_op();  // x; "before", "after" (vector<int64>) per axis, "value" (double)

}  // namespace bitale
