// How the places of a pooled axis and of its windows relate; shared by the pooling ops.
#pragma once

#include <array>
#include <vector>

#include "bitale/ops.h"
#include "graph/ir/nest.h"
#include "graph/ir/node.h"

namespace bitale {

// Per axis, 0 the height, 1 the width: window o covers the places o * stride - pad .. + window - 1.
struct PoolGeometry {
    std::array<std::int64_t, 2> window{1, 1}, stride{1, 1}, pad{0, 0};

    static PoolGeometry of(const Attributes& attributes);
    Attributes attributes() const;
    Int output_length(int axis, const Int& input) const;
    std::int64_t cells() const { return window[0] * window[1]; }

    // f(out, cell, in) for every cell that lies inside the image, window by window: the linear index of the
    // window in the pooled array, the cell's number ky * kw + kx, and its linear index in the image array.
    template <class F>
    void for_each_cell(const Dims& image, const Dims& pooled, F&& f) const {
        const std::int64_t planes = count_of(Dims(image.begin(), image.end() - 2));
        const std::int64_t h = image[image.size() - 2], w = image.back();
        const std::int64_t oh = pooled[pooled.size() - 2], ow = pooled.back();
        for (std::int64_t plane = 0; plane < planes; ++plane)
            for (std::int64_t oy = 0; oy < oh; ++oy)
                for (std::int64_t ox = 0; ox < ow; ++ox)
                    for (std::int64_t cell = 0; cell < cells(); ++cell) {
                        const std::int64_t y = oy * stride[0] - pad[0] + cell / window[1];
                        const std::int64_t x = ox * stride[1] - pad[1] + cell % window[1];
                        if (y < 0 || y >= h || x < 0 || x >= w) continue;
                        f((plane * oh + oy) * ow + ox, cell, (plane * h + y) * w + x);
                    }
    }
};

// Throws ShapeError unless windows and strides are at least 1, and paddings smaller than the windows; `op` is
// named.
PoolGeometry checked_geometry(const char* op, Size2 window, Size2 stride, Size2 pad, Where where);
// x [..., h, w] -> [..., oh, ow]. Throws ShapeError if no window fits.
Shape pooled_shape(const char* op, const NodePtr& x, const PoolGeometry& geometry, Where where);
// At the call, where lengths are known then.
std::vector<Equality> window_fits(const char* op, const Node& node);

}  // namespace bitale
