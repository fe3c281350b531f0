// How the tasks of one launch are shared out among threads: by estimated cost, in ranges that are taken one
// by one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bitale {

struct TaskRange {
    std::int64_t first = 0, last = 0;
    bool operator==(const TaskRange&) const = default;
};

// Tasks in a row that cost about the same.
struct TaskCost {
    std::int64_t tasks = 0;
    std::int64_t picoseconds = 0;  // of one
};

// The ranges [begins[t], begins[t + 1]) belong to thread t at first, the large ones before the small ones;
// who has finished takes those of others from behind. No ranges: one thread runs everything.
struct Shares {
    std::vector<TaskRange> ranges;
    std::vector<std::uint32_t> begins;
    bool operator==(const Shares&) const = default;
};

// Neighbouring tasks go to the same thread, step after step the same ones, so that what one step leaves in a
// core's cache is there for the next. Nothing is shared out that takes less than waking up others.
Shares share_out(std::span<const TaskCost> costs, int threads);

// Of the time that so many cores have from the begin of a kernel to its end, the part in which they work, if
// tasks take what they are estimated to, of each phase those that take longest first.
double predicted_efficiency(std::span<const std::vector<TaskCost>> phases, int cores);
// Picoseconds of one core.
double total_of(std::span<const TaskCost> costs);

}  // namespace bitale
