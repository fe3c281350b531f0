// Loops in vector lanes whose body asks, at each point, whether guards hold: the points where all of them do
// become a loop of their own that asks nothing. Compilers make scalars of reads that are guarded, or load
// them under a mask.
//
//     for x: y[x] = (row < m ? a[x] : 0) + (x >= 1 ? b[x - 1] : 0)
//
//     if row < m: for x below 1: (as it was);  for x from 1 on: y[x] = a[x] + b[x - 1]
//     else: the same with 0 for a[x]; where more than two guards like it differ, for x: (as it was)
//
// Points whose quotients by a small number are asked for are written out so many at a time:
//
//     for x: y[x] = x % 2 == 0 ? a[x / 2] : 0
//
//     for q below n / 2: y[2 * q] = a[q]; y[2 * q + 1] = 0
//     for x from n / 2 * 2 on: (as it was)
#pragma once

#include <cstdint>
#include <set>

#include "codegen/kernel/ir.h"

namespace bitale {

// For a CPU. Every point has the value that it had.
void cut_at_guards(KernelIR& kernel, const std::set<std::uint64_t>& sizes);

}  // namespace bitale
