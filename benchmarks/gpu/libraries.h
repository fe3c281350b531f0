// The libraries of a GPU, called as the device calls them, against loops in float64.
#pragma once

#include "gpu/machine.h"
#include "gpu/record.h"

namespace bench {

// Products: plain, transposed, with bias and relu. Throws NotHere without the library, as do the others.
Json probe_cublaslt(Machine& machine);
// A convolution with bias and relu, and both gradients.
Json probe_cudnn(Machine& machine);
// Where a NaN that goes into a bias and relu of either library, and into a network, comes out again. Wrong if
// it does not come out of the network, whose relus are what Bitale chose.
Json probe_nan(Machine& machine, const std::string& device);

}  // namespace bench
