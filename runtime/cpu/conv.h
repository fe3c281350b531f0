// Convolutions and their gradients by plain loops: what stands for a convolution library where there is no
// GPU.
#pragma once

#include "runtime/cpu/pool.h"
#include "runtime/exec/launcher.h"

namespace bitale {

// Tensors in any memory order. The order of every sum is fixed by the shape: the bits do not depend on the
// number of threads.
void convolve(Pool& pool, const ConvShape& shape, const ConvData& data);

}  // namespace bitale
