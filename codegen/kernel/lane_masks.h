// Reads in vector lanes that one guard switches on or off for all lanes, while their address does not follow
// what the guard compares:
//
//     for i: lanes j: v = i == row ? x[row, j] : 0
//
// g++ 12.2 with AVX-512 has been seen to address such a masked load relative to a row of another array, when
// it chooses the variables of loops (-fivopts): tests/numerics/subtensor_test.cpp, "moved by one row".
#pragma once

#include <string>

#include "codegen/kernel/ir.h"

namespace bitale {

bool masks_lanes_by_other_indices(const KernelIR& kernel);

// The text of such a kernel for a host compiler.
std::string without_chosen_variables(const std::string& functions);

}  // namespace bitale
