#include "gpu/definition.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

using namespace bitale;

namespace bench {

namespace {

using Place = std::array<std::int64_t, 4>;

std::int64_t count_of(const ConvSizes& t) { return t.shape[0] * t.shape[1] * t.shape[2] * t.shape[3]; }

std::size_t at(const ConvSizes& t, const Place& p) {
    return static_cast<std::size_t>(p[0] * t.strides[0] + p[1] * t.strides[1] + p[2] * t.strides[2] +
                                    p[3] * t.strides[3]);
}

// Of one dimension: the pixel below element `tap` of the window of output `y`.
struct Axis {
    std::int64_t stride, pad, dilation, image, window, output;
    bool flip;
    std::int64_t pixel(std::int64_t y, std::int64_t tap) const {
        return y * stride + (flip ? window - 1 - tap : tap) * dilation - pad;
    }
    bool inside(std::int64_t p) const { return p >= 0 && p < image; }
};

Axis axis_of(const ConvShape& s, std::size_t d) {
    return {s.stride[d],           s.pad[d], s.dilation[d], s.image.shape[d + 2], s.filters.shape[d + 2],
            s.output.shape[d + 2], s.flip};
}

double element(const ConvShape& s, const ConvolutionData& data, const Place& p) {
    const Axis rows = axis_of(s, 0), columns = axis_of(s, 1);
    // Of a group, whose filters meet channels of its own.
    const std::int64_t channels = s.filters.shape[1], filters = s.output.shape[1] / s.groups;
    double sum = 0;
    if (s.kind == ConvCall::Kind::filter_gradient) {
        const std::int64_t channel = p[0] / filters * channels + p[1];
        for (std::int64_t n = 0; n < s.output.shape[0]; ++n)
            for (std::int64_t y = 0; y < rows.output; ++y)
                for (std::int64_t x = 0; x < columns.output; ++x) {
                    const std::int64_t a = rows.pixel(y, p[2]), b = columns.pixel(x, p[3]);
                    if (rows.inside(a) && columns.inside(b))
                        sum += static_cast<double>(data.image[at(s.image, {n, channel, a, b})]) *
                               data.output[at(s.output, {n, p[0], y, x})];
                }
        return sum;
    }
    if (s.kind == ConvCall::Kind::forward) {
        const std::int64_t first = p[1] / filters * channels;
        for (std::int64_t k = 0; k < channels; ++k)
            for (std::int64_t r = 0; r < rows.window; ++r)
                for (std::int64_t q = 0; q < columns.window; ++q) {
                    const std::int64_t a = rows.pixel(p[2], r), b = columns.pixel(p[3], q);
                    if (rows.inside(a) && columns.inside(b))
                        sum += static_cast<double>(data.image[at(s.image, {p[0], first + k, a, b})]) *
                               data.filters[at(s.filters, {p[1], k, r, q})];
                }
        if (s.bias) sum += data.bias[static_cast<std::size_t>(p[1])];
        return s.relu ? std::max(sum, 0.0) : sum;
    }
    const std::int64_t group = p[1] / channels;
    for (std::int64_t y = 0; y < rows.output; ++y)
        for (std::int64_t r = 0; r < rows.window; ++r) {
            if (rows.pixel(y, r) != p[2]) continue;
            for (std::int64_t x = 0; x < columns.output; ++x)
                for (std::int64_t q = 0; q < columns.window; ++q) {
                    if (columns.pixel(x, q) != p[3]) continue;
                    for (std::int64_t o = group * filters; o < (group + 1) * filters; ++o)
                        sum += static_cast<double>(data.output[at(s.output, {p[0], o, y, x})]) *
                               data.filters[at(s.filters, {o, p[1] % channels, r, q})];
                }
        }
    return sum;
}

std::int64_t below(std::mt19937& engine, std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(engine);
}

}  // namespace

std::vector<float> random_floats(std::int64_t count, unsigned seed) {
    std::mt19937 engine(seed);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& v : values) v = std::uniform_real_distribution<float>(-1, 1)(engine);
    return values;
}

double Sample::error_of(const std::vector<float>& got) const {
    double errors = 0, squares = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
        const double e = static_cast<double>(got[places[i]]) - expected[i];
        errors += e * e;
        squares += expected[i] * expected[i];
    }
    return std::sqrt(errors / squares);
}

ProductData random_data(const GemmShape& s) {
    return {random_floats(s.m * s.k, 1), random_floats(s.k * s.n, 2), random_floats(s.n, 3)};
}

Sample sample_of(const GemmShape& s, const ProductData& data, int count) {
    std::mt19937 engine(8);
    Sample sample;
    for (int e = 0; e < count; ++e) {
        const std::int64_t i = below(engine, s.m), j = below(engine, s.n);
        double sum = s.bias ? data.bias[static_cast<std::size_t>(j)] : 0;
        for (std::int64_t k = 0; k < s.k; ++k)
            sum += static_cast<double>(
                       data.a[static_cast<std::size_t>(s.transpose_a ? k * s.m + i : i * s.k + k)]) *
                   data.b[static_cast<std::size_t>(s.transpose_b ? j * s.k + k : k * s.n + j)];
        sample.places.push_back(static_cast<std::size_t>(i * s.n + j));
        sample.expected.push_back(s.relu ? std::max(sum, 0.0) : sum);
    }
    return sample;
}

ConvolutionData random_data(const ConvShape& s) {
    return {random_floats(count_of(s.image), 4), random_floats(count_of(s.filters), 5),
            random_floats(count_of(s.output), 6), random_floats(s.filters.shape[0], 7)};
}

Sample sample_of(const ConvShape& s, const ConvolutionData& data, int count) {
    const ConvSizes& result = s.kind == ConvCall::Kind::forward          ? s.output
                              : s.kind == ConvCall::Kind::image_gradient ? s.image
                                                                         : s.filters;
    std::mt19937 engine(9);
    Sample sample;
    for (int e = 0; e < count; ++e) {
        Place p{};
        for (std::size_t d = 0; d < p.size(); ++d) p[d] = below(engine, result.shape[d]);
        sample.places.push_back(at(result, p));
        sample.expected.push_back(element(s, data, p));
    }
    return sample;
}

}  // namespace bench
