// How many rows of its group's first axis a task computes: by the work of the group, and so that many cores have
// work, however many there are.
#pragma once

#include <cstdint>

#include "codegen/schedule/segment.h"

namespace bitale {

constexpr std::int64_t pointwise_block = 2048;  // elements of a task that only maps

struct TaskSize {
    // On a CPU one row, or several: those of a tile of a product, those that meet as vectors, those that lanes
    // run along, or so many that a map has 2,048 elements. On a GPU as many as occupy the threads of a block;
    // with products, those of the smallest product, whose sums take longest.
    std::int64_t rows = 1;
    std::int64_t fewest = 1;  // what the members need that do most of the work
    double work = 0;          // of a row, in picoseconds of one core
};
TaskSize size_of_tasks(const Group& group, const SegmentContext& context);

// Picoseconds that a core takes for a row of the nest's results.
double work_of_row(const Nest& nest, const ReductionTree& tree, const SegmentContext& context);

// Tasks that leave few of many cores without work, or are too small to be worth parts.
bool enough_for_cores(double tasks, double work_of_task);
// Into how many parts a task would have to be cut to be enough.
double parts_for_cores(double tasks, double work_of_task);
// Fewer rows where they leave too few tasks.
std::int64_t rows_for_cores(const TaskSize& size, double extent);

}  // namespace bitale
