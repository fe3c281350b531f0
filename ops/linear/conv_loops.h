// The loops of the reference evaluations of a convolution and its two gradients, over float64 arrays.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bitale/array.h"
#include "ops/linear/conv_geometry.h"

namespace bitale {

// The lengths of image [n, (groups,) channels, height, width], filters [(groups,) outputs, channels, height,
// width] and output [n, (groups,) outputs, height, width]; no group axis counts as one group.
struct ConvLoops {
    std::int64_t images = 0, groups = 1, channels = 0, outputs = 0;
    std::array<std::int64_t, 2> image{}, filter{}, output{};  // height, width

    static ConvLoops of(const Dims& x, const Dims& w, const Dims& r) {
        const ConvAxes axes = ConvAxes::of(static_cast<int>(x.size()));
        ConvLoops l;
        l.images = x[0];
        l.groups = axes.grouped ? x[1] : 1;
        l.channels = w[axes.filter_channels];
        l.outputs = w[axes.outputs];
        for (std::size_t i = 0; i < 2; ++i) {
            l.image[i] = x[axes.window + i];
            l.filter[i] = w[axes.window + i];
            l.output[i] = r[axes.window + i];
        }
        return l;
    }

    template <class F>
    void over_outputs(F&& f) const {
        for (std::int64_t n = 0; n < images; ++n)
            for (std::int64_t g = 0; g < groups; ++g)
                for (std::int64_t o = 0; o < outputs; ++o)
                    for (std::int64_t y = 0; y < output[0]; ++y)
                        for (std::int64_t x = 0; x < output[1]; ++x) f(n, g, o, y, x);
    }
    template <class F>
    void over_taps(F&& f) const {
        for (std::int64_t c = 0; c < channels; ++c)
            for (std::int64_t y = 0; y < filter[0]; ++y)
                for (std::int64_t x = 0; x < filter[1]; ++x) f(c, y, x);
    }
    bool inside(std::int64_t y, std::int64_t x) const {
        return y >= 0 && y < image[0] && x >= 0 && x < image[1];
    }
    std::size_t image_at(std::int64_t n, std::int64_t g, std::int64_t c, std::int64_t y,
                         std::int64_t x) const {
        return at(((n * groups + g) * channels + c) * image[0] + y, image[1], x);
    }
    std::size_t filter_at(std::int64_t g, std::int64_t o, std::int64_t c, std::int64_t y,
                          std::int64_t x) const {
        return at(((g * outputs + o) * channels + c) * filter[0] + y, filter[1], x);
    }
    std::size_t output_at(std::int64_t n, std::int64_t g, std::int64_t o, std::int64_t y,
                          std::int64_t x) const {
        return at(((n * groups + g) * outputs + o) * output[0] + y, output[1], x);
    }

  private:
    static std::size_t at(std::int64_t row, std::int64_t width, std::int64_t column) {
        return static_cast<std::size_t>(row * width + column);
    }
};

}  // namespace bitale
