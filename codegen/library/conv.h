// Recognises convolutions that a library computes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/group/values.h"
#include "codegen/target.h"

namespace bitale {

struct ConvChoice {
    std::optional<LibraryCall> call;
    std::string why_generated;  // where there is no call, of a convolution or one of its gradients
};

// The values of a convolution's tensors, from the operands of its call and its result.
struct ConvValues {
    int image = -1, filters = -1, output = -1;
};
ConvValues conv_values(const ConvCall& call, const std::vector<int>& operands, int result);
// The strides of its tensors as these values lie in memory.
void set_strides(ConvCall& call, const ConvValues& places, const Values& values);

// A call reads and writes plain float32 tensors, so the first convolution of a network stays generated: its
// image is cast and normalised where it is read, and is never stored wider than the data set is.
ConvChoice choose_conv(const Values& values, int number, const Target& target);

// Whether a library is going to compute this node.
bool library_computes(const Node& node, const Target& target);

}  // namespace bitale
