// Convolutions straight from their definition, in float64: maps [n, c, h, w], filters [k, c / groups, r, s].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bitale/bitale.h"

namespace bitale::test {

struct ConvLayer {
    Dims image, filters;
    std::int64_t pad[2] = {0, 0}, stride[2] = {1, 1}, dilation = 1;
    bool flip = true;
    std::int64_t groups() const { return image[1] / filters[1]; }
    std::int64_t out(std::size_t axis) const {
        return (image[2 + axis] + 2 * pad[axis] - (filters[2 + axis] - 1) * dilation - 1) / stride[axis] + 1;
    }
    Dims output() const { return {image[0], filters[0], out(0), out(1)}; }
    ConvOptions options() const;
};

// The result, and both gradients of the sum of y * g.
struct ConvExpected {
    std::vector<double> y, dx, dw;
};
ConvExpected define_conv(const ConvLayer& layer, const Array& x, const Array& w, const Array& g);

// Of float32 values, relative to the largest expected magnitude.
double error_of_largest(const Array& got, const std::vector<double>& expected);

}  // namespace bitale::test
