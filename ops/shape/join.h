// Views with several sources or a border: concat and pad.
#pragma once

#include "graph/ir/node.h"

namespace bitale {

const Op* concat_op();  // parts...; "axis" (int64)
const Op* pad_op();     // x; "before", "after" (vector<int64>) per axis, "value" (double)

}  // namespace bitale
