// What a task computes of a group.
#pragma once

#include <cstdint>
#include <optional>

#include "codegen/group/in_step.h"

namespace bitale {

struct AxisCut {
    AxesInStep axis;          // of each value, the loop over results that is cut
    std::int64_t extent = 0;  // of the axis, the same for all of them
    std::int64_t width = 0;   // of a task's part; the last one may be shorter

    std::int64_t parts() const { return (extent + width - 1) / width; }
    Int width_at(const Int& first) const {
        return extent % width == 0 ? Int(width) : min(width, extent - first);
    }
};

struct TaskPlan {
    // On a CPU one row, or several: those of a tile of a product, those that meet as vectors, those that
    // lanes run along, or so many that a map has 2,048 elements. Fewer where these would leave cores without
    // a task, but not less than the members need that do most of the work. On a GPU see gpu_tasks.h.
    std::int64_t rows = 1;
    // Parts of a second axis: on a CPU where rows are too few for many cores and nothing much is done twice.
    std::optional<AxisCut> cut;
};

}  // namespace bitale
