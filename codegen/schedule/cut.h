// Cutting a second axis of a group. On a GPU where the rows of its values are too large for the scratch of
// one task, as the maps of a convolution with many channels are: a task has some channels of a row. On a CPU
// where there are too few rows for many cores.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/schedule/segment.h"

namespace bitale {

// Of a group with a product, all of whose values walk one more axis in step; such that what stays inside the
// group needs no more than `bytes` of scratch. Nothing where that is not possible or whole rows fit.
std::optional<AxisCut> cut_axis(const Group& group, const Values& values, const Grouping& grouping,
                                const std::vector<int>& inside, std::int64_t bytes);

// Of a group all of whose values walk one more axis in step, of a known length: into so many parts, or fewer,
// which leave no lanes, or what they have loaded, unused; as many as can be where nothing is said. Nothing
// where there is no such axis, or where a task would read what another one writes.
std::optional<AxisCut> cut_into_parts(const Group& group, const SegmentContext& context,
                                      std::optional<double> parts = {});

}  // namespace bitale
