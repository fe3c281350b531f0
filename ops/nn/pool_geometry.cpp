#include "ops/nn/pool_geometry.h"

#include <string>

#include "graph/ir/fault_text.h"
#include "ops/dsl/wording.h"
#include "ops/shape/lengths.h"

namespace bitale {

namespace {

constexpr const char* axis_name[2] = {"height", "width"};

// `there`: the length of the images along the axis, with their padding.
std::string no_room(const char* op, const Node& x, const PoolGeometry& geometry, std::size_t axis,
                    const std::string& there) {
    const std::string padding = std::to_string(geometry.pad[axis]);
    return std::string(op) + " of " + describe(x) + ": the " + axis_name[axis] + " of its window, " +
           std::to_string(geometry.window[axis]) + ", is more than that of the images, " + there +
           (geometry.pad[axis] == 0 ? "; pool fewer times, or less at a time"
                                    : " with padding " + padding + " on both sides");
}

}  // namespace

PoolGeometry PoolGeometry::of(const Attributes& attributes) {
    const auto pair = [&](const char* name) {
        const auto& list = attributes.get<std::vector<std::int64_t>>(name);
        BITALE_CHECK(list.size() == 2, std::string("a pooling's ") + name + " has a height and a width");
        return std::array<std::int64_t, 2>{list[0], list[1]};
    };
    return {pair("window"), pair("stride"), pair("pad")};
}

Attributes PoolGeometry::attributes() const {
    const auto list = [](const std::array<std::int64_t, 2>& pair) {
        return std::vector<std::int64_t>(pair.begin(), pair.end());
    };
    return {{"window", list(window)}, {"stride", list(stride)}, {"pad", list(pad)}};
}

Int PoolGeometry::output_length(int axis, const Int& input) const {
    const auto i = static_cast<std::size_t>(axis);
    return floordiv(input + 2 * pad[i] - window[i], stride[i]) + 1;
}

PoolGeometry checked_geometry(const char* op, Size2 window, Size2 stride, Size2 pad, Where where) {
    const PoolGeometry geometry{{window.h, window.w}, {stride.h, stride.w}, {pad.h, pad.w}};
    for (std::size_t i = 0; i < 2; ++i) {
        if (geometry.window[i] < 1 || geometry.stride[i] < 1)
            throw ShapeError(where, std::string(op) + ": window and stride must be at least 1, but are " +
                                        std::to_string(geometry.window[i]) + " and " +
                                        std::to_string(geometry.stride[i]));
        if (geometry.pad[i] < 0 || geometry.pad[i] >= geometry.window[i])
            throw ShapeError(where, std::string(op) + ": a padding of " + std::to_string(geometry.pad[i]) +
                                        " must be at least 0 and smaller than the window of " +
                                        std::to_string(geometry.window[i]));
    }
    return geometry;
}

Shape pooled_shape(const char* op, const NodePtr& x, const PoolGeometry& geometry, Where where) {
    if (x->type.rank() < 2)
        throw ShapeError(
            where, std::string(op) + " works on the last two axes; there are not as many in " + describe(*x));
    Shape shape = x->type.shape;
    for (std::size_t i = 0; i < 2; ++i) {
        Int& length = shape[shape.size() - 2 + i];
        const Int there = length + 2 * geometry.pad[i];
        if (there.range().high < geometry.window[i])
            throw ShapeError(where, no_room(op, *x, geometry, i, there.text()));
        length = geometry.output_length(static_cast<int>(i), length);
    }
    return shape;
}

std::vector<Equality> window_fits(const char* op, const Node& node) {
    const PoolGeometry geometry = PoolGeometry::of(node.attributes);
    const Shape& x = node.inputs[0]->type.shape;
    std::vector<Equality> r;
    for (std::size_t i = 0; i < 2; ++i)
        demand_at_most(r, geometry.window[i], x[x.size() - 2 + i] + 2 * geometry.pad[i],
                       no_room(op, *node.inputs[0], geometry, i, number_there()));
    return r;
}

}  // namespace bitale
