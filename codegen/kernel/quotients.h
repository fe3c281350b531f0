// Loops in vector lanes whose indices ask for quotients of their variable by a number, as those of elements
// that share bytes do, or of an axis that is joined of two: compilers divide at each point and gather. They
// become a loop over the quotients around one over the remainders, in which reads walk memory as they did.
//
//     for x below 784: y[x] = bytes[x % 392] >> x / 392 * 4
//
//     for q below 2: for r below 392: y[392 * q + r] = bytes[r] >> q * 4
//
// Rows of a table that are looked up and lie side by side are copies of whole rows then:
//
//     for x below 320: y[x] = table[ids[x / 16], x % 16]
//
//     for q below 20: row = ids[q]; for r below 16: y[16 * q + r] = table[row, r]
#pragma once

#include "codegen/kernel/ir.h"

namespace bitale {

// Shorter pieces are not worth a loop of their own.
constexpr std::int64_t shortest_run = 12;

// For a CPU. Every point has the value that it had.
void cut_at_quotients(KernelIR& kernel);

}  // namespace bitale
