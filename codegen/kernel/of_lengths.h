// Values that lengths alone determine, such as the float by which the mean of an unknown number of rows
// divides: a task computes each once, before its loops. Compilers convert the integer in each lane again, and
// many have no vectors for that.
//
//     for i: y[i] = x[i] / (float)n
//
//     m = (float)n;  for i: y[i] = x[i] / m
#pragma once

#include <cstdint>
#include <set>

#include "codegen/kernel/ir.h"

namespace bitale {

// `lengths`: symbols whose values a call knows.
void keep_values_of_lengths(KernelIR& kernel, const std::set<std::uint64_t>& lengths);

}  // namespace bitale
