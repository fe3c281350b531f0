// What a convolution and its two gradients share: how output places, kernel taps and input places relate.
#pragma once

#include <array>
#include <string>

#include "graph/ir/nest.h"
#include "graph/ir/node.h"

namespace bitale {

// Per axis: 0 is the height, 1 the width. Tap t of the kernel meets input place out * stride - pad + t *
// dilation; with `flip`, tap t holds the filter's element kernel - 1 - t.
struct ConvGeometry {
    std::array<std::int64_t, 2> stride{1, 1}, dilation{1, 1}, pad{0, 0};
    bool flip = true;

    static ConvGeometry of(const Attributes& attributes);  // "stride", "dilation", "pad", "flip"
    Attributes attributes() const;

    // (kernel - 1) * dilation + 1: the input places that a kernel spans.
    std::int64_t span(int axis, std::int64_t kernel) const;
    Int output_length(int axis, const Int& input, std::int64_t kernel) const;
    // Input place for an output place and a filter element, in the padded frame's input coordinates.
    Int place(int axis, const Int& out, const Int& element, std::int64_t kernel) const;
    std::int64_t place(int axis, std::int64_t out, std::int64_t element, std::int64_t kernel) const;
};

// The float32 or float64 that both operands have. Throws TypeError naming both and the cast that cures it.
DType conv_dtype(const Nodes& inputs, const char* first, const char* second, Where where);
// Throws ShapeError unless the node is 4-D; `layout` is what its axes mean: "[n, c, h, w]".
void require_4d(const NodePtr& node, const char* what, const char* layout, Where where);
// Where the axes of images [n, channels, height, width] and of filters [outputs, channels, height, width]
// are, and of the same with groups of channels: [n, groups, channels, height, width] and [groups, outputs,
// channels, height, width].
struct ConvAxes {
    bool grouped = false;
    std::size_t outputs = 0, filter_channels = 1, image_channels = 1,
                window = 2;  // window: height, then width

    // Throws ShapeError unless both have four axes, or five of groups.
    static ConvAxes of(const Nodes& inputs, const char* first, const char* second, Where where);
    static ConvAxes of(int rank);  // of operands that a convolution has accepted
    // {n, c, y, x} with the group in its place.
    std::vector<Int> at_image(const Int& n, const Int& group, const Int& c, const Int& y, const Int& x) const;
    std::vector<Int> at_filter(const Int& group, const Int& o, const Int& c, const Int& y,
                               const Int& x) const;
};
// The kernel's height or width. Throws ShapeError unless it is a positive number known when the graph is
// built.
std::int64_t kernel_length(const NodePtr& filters, int axis, Where where);
// Throws ShapeError where the numbers of groups of two operands can never be equal.
void require_groups(const ConvAxes& axes, const Int& a, const Int& b, Where where);
// Throws ShapeError where two lengths can never be equal; `what` names both: "the channels of input and
// filters".
void require_equal(const Int& a, const Int& b, const std::string& what, Where where);

// The body of all three nests: the product of two scalars of one dtype.
Scalar scalar_product(Scalar a, Scalar b);

}  // namespace bitale
