#include "codegen/library/conv_cost.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "codegen/group/values.h"

namespace bitale {

namespace {

// Known of GPUs: a T4, an A100 and an H100 compute 12 to 25 float32 operations in the time of a byte; cuDNN's
// kernels without tensor cores make tiles of 32 filters or more and add up eight products at a time; tensor
// cores take eight channels at once and are eight times as fast.
constexpr double operations_per_byte = 20, side_of_tile = 32, depth_of_tile = 8, tensor_cores = 8;
// Assumed of generated code, not measured: the part of these operations that it attains.
constexpr double generated_speed = 0.125;

double count_of(const ConvTensor& t) {
    double count = 1;
    for (const Int& n : t.shape) count *= typical(n);
    return count;
}

double part_of(double tile, double length) { return std::min(1.0, length / tile); }

// What a group has.
struct Group {
    double filters = 0, channels = 0, window = 0;
};

// A group is a product of its own, with tiles of its own: of places and filters in a forward convolution, of
// places and channels in the gradient of the image, of filters and the channels at each place of the window
// in that of the filters.
double filled_by(const Group& group, const ConvCall& call) {
    // Tensor cores take the channels, or filters, at one place of the window at a time.
    const double places = call.precision == Precision::float32 ? group.window : 1;
    switch (call.kind) {
        case ConvCall::Kind::forward:
            return part_of(side_of_tile, group.filters) * part_of(depth_of_tile, group.channels * places);
        case ConvCall::Kind::image_gradient:
            return part_of(side_of_tile, group.channels) * part_of(depth_of_tile, group.filters * places);
        case ConvCall::Kind::filter_gradient: break;
    }
    return part_of(side_of_tile, group.filters) * part_of(side_of_tile, group.channels * group.window);
}

// cuDNN 9.19 proposes no tensor cores first where a group has a single channel or filter.
bool on_tensor_cores(const Group& group, Precision precision) {
    return precision != Precision::float32 && group.channels > 1 && group.filters > 1;
}

}  // namespace

GroupedCost cost_of_groups(const ConvCall& call) {
    double operations = 2 * count_of(call.output);
    for (const std::size_t axis : {1, 2, 3}) operations *= typical(call.filters.shape[axis]);
    const double bytes =
        sizeof(float) * (count_of(call.image) + count_of(call.filters) + count_of(call.output));
    GroupedCost cost;
    cost.operations_per_byte = operations / bytes;
    const std::array<Int, 4>& filters = call.filters.shape;
    const Group group{typical(filters[0]) / static_cast<double>(call.groups), typical(filters[1]),
                      typical(filters[2]) * typical(filters[3])};
    cost.filled = filled_by(group, call);
    const double of_memory = cost.operations_per_byte / operations_per_byte;
    const double speed = cost.filled * (on_tensor_cores(group, call.precision) ? tensor_cores : 1);
    cost.library = std::max(1.0, of_memory / speed);
    cost.generated = std::max(1.0, of_memory / generated_speed);
    return cost;
}

}  // namespace bitale
