// Loops in vector lanes that read the elements of short rows, a lane for each row: neighbouring lanes read as
// far apart as a row is long, and compilers load each lane by itself. The rows of 16 lanes are loaded whole
// and transposed in registers first; the lanes read columns of that tile, neighbours again.
//
//     for j: y[j] = x[10 * j] + x[10 * j + 1] + ... + x[10 * j + 9]
//
//     for blocks of 16 lanes:
//         tile = transpose(x[160 * block .. 160 * block + 159] as 16 rows of 10)
//         for lane of block: y[16 * block + lane] = tile[0][lane] + tile[1][lane] + ... + tile[9][lane]
#pragma once

#include <cstdint>
#include <set>

#include "codegen/kernel/ir.h"

namespace bitale {

// For a CPU. Every point has the value that it had.
void transpose_reads(KernelIR& kernel, const std::set<std::uint64_t>& sizes);

}  // namespace bitale
