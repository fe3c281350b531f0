// Loops in vector lanes whose body asks, at each point, whether guards hold: the loop is cut into parts that
// know on which side of each guard they are, and ask nothing. Compilers make scalars of reads that are
// guarded, or load them under a mask.
//
//     for x: y[x] = (row >= 1 ? a[row - 1][x] : 0) + (x >= 1 ? b[x - 1] : 0)
//
//     if row >= 1, as most rows are:
//         for x below 1: y[x] = a[row - 1][x]
//         for x from 1 on: y[x] = a[row - 1][x] + b[x - 1]
//     else: for x: (as it was)
//
// A guard that holds for about half of the rows has a branch for each side.
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
