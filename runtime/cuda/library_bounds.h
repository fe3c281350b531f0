// What a library's product or convolution may be: the result by plain loops, and how far rounding in another
// order can lead away from it.
#pragma once

#include <vector>

#include "bitale/array.h"
#include "runtime/exec/launcher.h"

namespace bitale::cuda {

// Sums of k products in any order are k times the unit roundoff times the sum of the products' magnitudes
// away from the exact one, and operands that are rounded to tf32 or bf16 add two roundings of those. `bounds`
// of each element of c, which has the sum as computed in float64.
void multiply_with_bounds(const GemmShape& shape, const float* a, const float* b, const float* bias, float* c,
                          std::vector<double>& bounds);

// Likewise of the third buffer of a convolution's step. Engines may transform tiles of an image, which mixes
// the errors of neighbours, so all elements have the bound of the largest. The sums are computed in float32.
void convolve_with_bounds(const ConvShape& shape, const std::vector<Array*>& buffers,
                          std::vector<double>& bounds);

// NaN belongs where the bound is NaN, since an operand was, and where NaN is expected; where magnitudes
// overflow, anything goes.
bool is_within(float expected, float got, double bound);

}  // namespace bitale::cuda
