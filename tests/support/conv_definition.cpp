#include "tests/support/conv_definition.h"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.h"

namespace bitale::test {

ConvOptions ConvLayer::options() const {
    return {.border_mode = Border(pad[0], pad[1]),
            .subsample = Size2(stride[0], stride[1]),
            .dilation = Size2(dilation, dilation),
            .filter_flip = flip,
            .groups = static_cast<int>(groups())};
}

ConvExpected define_conv(const ConvLayer& l, const Array& x, const Array& w, const Array& g) {
    const auto xs = x.view<float>(), ws = w.view<float>(), gs = g.view<float>();
    ConvExpected e{std::vector<double>(gs.size()), std::vector<double>(xs.size()),
                   std::vector<double>(ws.size())};
    const Dims to = l.output();
    const std::int64_t channels = l.filters[1], filters_of_group = l.filters[0] / l.groups();
    std::size_t o = 0;
    for (std::int64_t n = 0; n < to[0]; ++n)
        for (std::int64_t k = 0; k < to[1]; ++k)
            for (std::int64_t oy = 0; oy < to[2]; ++oy)
                for (std::int64_t ox = 0; ox < to[3]; ++ox, ++o)
                    for (std::int64_t c = 0; c < channels; ++c)
                        for (std::int64_t r = 0; r < l.filters[2]; ++r)
                            for (std::int64_t q = 0; q < l.filters[3]; ++q) {
                                const std::int64_t iy = oy * l.stride[0] - l.pad[0] + r * l.dilation,
                                                   ix = ox * l.stride[1] - l.pad[1] + q * l.dilation;
                                if (iy < 0 || iy >= l.image[2] || ix < 0 || ix >= l.image[3]) continue;
                                const std::int64_t fr = l.flip ? l.filters[2] - 1 - r : r,
                                                   fq = l.flip ? l.filters[3] - 1 - q : q,
                                                   channel = k / filters_of_group * channels + c;
                                const auto i = static_cast<std::size_t>(
                                               ((n * l.image[1] + channel) * l.image[2] + iy) * l.image[3] +
                                               ix),
                                           f = static_cast<std::size_t>(
                                               ((k * channels + c) * l.filters[2] + fr) * l.filters[3] + fq);
                                const auto xv = static_cast<double>(xs[i]), wv = static_cast<double>(ws[f]),
                                           gv = static_cast<double>(gs[o]);
                                e.y[o] += xv * wv;
                                e.dx[i] += gv * wv;
                                e.dw[f] += gv * xv;
                            }
    return e;
}

double error_of_largest(const Array& got, const std::vector<double>& expected) {
    const auto values = got.view<float>();
    REQUIRE(values.size() == expected.size());
    double largest = 0, worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        worst = std::max(worst, std::abs(static_cast<double>(values[i]) - expected[i]));
    }
    return worst / largest;
}

}  // namespace bitale::test
