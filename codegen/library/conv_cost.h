// What a convolution in groups of channels costs a GPU: by a library, or as generated code.
#pragma once

#include "codegen/program.h"

namespace bitale {

// Times, in units of the one in which its tensors pass through memory once: nothing takes less. Only which is
// less matters.
struct GroupedCost {
    double library = 1, generated = 1;
    double operations_per_byte = 0;
    double filled = 1;  // the part of a library's tiles that its groups fill
};

GroupedCost cost_of_groups(const ConvCall& call);

}  // namespace bitale
