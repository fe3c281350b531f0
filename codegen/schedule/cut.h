// Cutting a second axis of a group: where the rows of its values are too large for the scratch of one task,
// as the maps of a convolution with many channels are, a task has some channels of a row.
#pragma once

#include <map>
#include <optional>

#include "codegen/group/group.h"

namespace bitale {

struct AxisCut {
    std::map<int, int> axis;  // of each value, the loop over results that is cut
    std::int64_t extent = 0;  // of the axis, the same for all of them
    std::int64_t width = 0;   // of a task's part
};

// Of a group with a product, all of whose values walk one more axis in step; such that what stays inside the
// group needs no more than `bytes` of scratch. Nothing where that is not possible or whole rows fit.
std::optional<AxisCut> cut_axis(const Group& group, const Values& values, const Grouping& grouping,
                                const std::vector<int>& inside, std::int64_t bytes);

}  // namespace bitale
