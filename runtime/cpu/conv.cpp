#include "runtime/cpu/conv.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitale {

namespace {

// The places of a convolution along one axis: output place o meets input place o * stride + shift for a given
// element of the filters, for o in [first, last).
struct Taps {
    std::int64_t stride = 1, shift = 0, first = 0, last = 0;
};

class DirectConvolution {
  public:
    DirectConvolution(const ConvShape& shape, const ConvData& data)
        : s_(shape),
          image_(static_cast<float*>(data.image)),
          filters_(static_cast<float*>(data.filters)),
          output_(static_cast<float*>(data.output)),
          bias_(static_cast<const float*>(data.bias)) {
        for (const int axis : {0, 1}) {
            const auto a = static_cast<std::size_t>(axis);
            for (std::int64_t e = 0; e < s_.filters.shape[2 + a]; ++e) taps_[a].push_back(taps(a, e));
        }
    }

    // A task of one kind is a map of the result: of an image and an output, an image and a channel, or one
    // filter.
    std::int64_t tasks() const {
        const ConvSizes& r = result();
        return r.shape[0] * r.shape[1];
    }

    void run(std::int64_t task) const {
        const std::int64_t a = task / result().shape[1], b = task % result().shape[1];
        switch (s_.kind) {
            case ConvCall::Kind::forward: forward(a, b); break;
            case ConvCall::Kind::image_gradient: image_gradient(a, b); break;
            case ConvCall::Kind::filter_gradient: filter_gradient(a, b); break;
        }
    }

  private:
    const ConvSizes& result() const {
        return s_.kind == ConvCall::Kind::forward          ? s_.output
               : s_.kind == ConvCall::Kind::image_gradient ? s_.image
                                                           : s_.filters;
    }

    Taps taps(std::size_t axis, std::int64_t element) const {
        const std::int64_t kernel = s_.filters.shape[2 + axis], length = s_.image.shape[2 + axis];
        const std::int64_t tap = s_.flip ? kernel - 1 - element : element;
        Taps t;
        t.stride = s_.stride[axis];
        t.shift = tap * s_.dilation[axis] - s_.pad[axis];
        if (t.shift < 0) t.first = (-t.shift + t.stride - 1) / t.stride;
        t.last =
            length > t.shift ? std::min(s_.output.shape[2 + axis], (length - 1 - t.shift) / t.stride + 1) : 0;
        return t;
    }

    static std::int64_t at(const ConvSizes& t, std::int64_t a, std::int64_t b, std::int64_t y,
                           std::int64_t x) {
        return a * t.strides[0] + b * t.strides[1] + y * t.strides[2] + x * t.strides[3];
    }

    std::int64_t filters_of_group() const { return s_.output.shape[1] / s_.groups; }

    // The first of the image's channels that filter k meets.
    std::int64_t first_channel(std::int64_t k) const {
        return s_.groups == 1 ? 0 : k / filters_of_group() * s_.filters.shape[1];
    }

    void forward(std::int64_t n, std::int64_t k) const {
        const std::int64_t width = s_.output.shape[3], step = s_.image.strides[3] * s_.stride[1];
        const std::int64_t first = first_channel(k);
        std::vector<float> row(static_cast<std::size_t>(width));
        for (std::int64_t oy = 0; oy < s_.output.shape[2]; ++oy) {
            std::fill(row.begin(), row.end(), 0.0f);
            for (std::int64_t c = 0; c < s_.filters.shape[1]; ++c)
                for (std::size_t r = 0; r < taps_[0].size(); ++r) {
                    const Taps& v = taps_[0][r];
                    if (oy < v.first || oy >= v.last) continue;
                    for (std::size_t q = 0; q < taps_[1].size(); ++q) {
                        const Taps& h = taps_[1][q];
                        if (h.first >= h.last) continue;
                        const float f = filters_[at(s_.filters, k, c, static_cast<std::int64_t>(r),
                                                    static_cast<std::int64_t>(q))];
                        const float* x = image_ + at(s_.image, n, first + c, oy * v.stride + v.shift,
                                                     h.first * h.stride + h.shift);
                        float* to = row.data() + h.first;
                        const std::int64_t count = h.last - h.first;
                        if (step == 1)
                            for (std::int64_t i = 0; i < count; ++i) to[i] += f * x[i];
                        else
                            for (std::int64_t i = 0; i < count; ++i) to[i] += f * x[i * step];
                    }
                }
            float* y = output_ + at(s_.output, n, k, oy, 0);
            for (std::int64_t i = 0; i < width; ++i) {
                float value = row[static_cast<std::size_t>(i)];
                if (s_.bias) value += bias_[k];
                if (s_.relu && value < 0) value = 0;
                y[i * s_.output.strides[3]] = value;
            }
        }
    }

    void image_gradient(std::int64_t n, std::int64_t c) const {
        const std::int64_t height = s_.image.shape[2], width = s_.image.shape[3], step = s_.output.strides[3];
        const std::int64_t channels = s_.filters.shape[1], filters = filters_of_group(),
                           group = channels > 0 ? c / channels : 0;
        std::vector<float> plane(static_cast<std::size_t>(height * width), 0.0f);
        for (std::int64_t k = group * filters; k < (group + 1) * filters; ++k)
            for (std::size_t r = 0; r < taps_[0].size(); ++r)
                for (std::size_t q = 0; q < taps_[1].size(); ++q) {
                    const Taps &v = taps_[0][r], &h = taps_[1][q];
                    if (h.first >= h.last) continue;
                    const float f = filters_[at(s_.filters, k, c % channels, static_cast<std::int64_t>(r),
                                                static_cast<std::int64_t>(q))];
                    const std::int64_t count = h.last - h.first;
                    for (std::int64_t oy = v.first; oy < v.last; ++oy) {
                        const float* g = output_ + at(s_.output, n, k, oy, h.first);
                        float* to =
                            plane.data() + (oy * v.stride + v.shift) * width + h.first * h.stride + h.shift;
                        if (step == 1 && h.stride == 1)
                            for (std::int64_t i = 0; i < count; ++i) to[i] += f * g[i];
                        else
                            for (std::int64_t i = 0; i < count; ++i) to[i * h.stride] += f * g[i * step];
                    }
                }
        for (std::int64_t y = 0; y < height; ++y)
            for (std::int64_t x = 0; x < width; ++x)
                image_[at(s_.image, n, c, y, x)] = plane[static_cast<std::size_t>(y * width + x)];
    }

    void filter_gradient(std::int64_t k, std::int64_t c) const {
        const std::int64_t step_x = s_.image.strides[3] * s_.stride[1], step_g = s_.output.strides[3],
                           first = first_channel(k);
        for (std::size_t r = 0; r < taps_[0].size(); ++r)
            for (std::size_t q = 0; q < taps_[1].size(); ++q) {
                const Taps &v = taps_[0][r], &h = taps_[1][q];
                // Rows in float32, their sum wider: thousands of rows are added one after another.
                double sum = 0;
                for (std::int64_t n = 0; n < s_.output.shape[0]; ++n)
                    for (std::int64_t oy = v.first; oy < v.last && h.first < h.last; ++oy)
                        sum += static_cast<double>(product(
                            image_ + at(s_.image, n, first + c, oy * v.stride + v.shift,
                                        h.first * h.stride + h.shift),
                            step_x, output_ + at(s_.output, n, k, oy, h.first), step_g, h.last - h.first));
                filters_[at(s_.filters, k, c, static_cast<std::int64_t>(r), static_cast<std::int64_t>(q))] =
                    static_cast<float>(sum);
            }
    }

    // In eight partial sums, which a compiler keeps in one register.
    static float product(const float* x, std::int64_t step_x, const float* g, std::int64_t step_g,
                         std::int64_t count) {
        std::array<float, 8> sums{};
        std::int64_t i = 0;
        if (step_x == 1 && step_g == 1)
            for (; i + 8 <= count; i += 8)
                for (std::size_t j = 0; j < 8; ++j)
                    sums[j] += x[i + static_cast<std::int64_t>(j)] * g[i + static_cast<std::int64_t>(j)];
        for (; i < count; ++i) sums[static_cast<std::size_t>(i % 8)] += x[i * step_x] * g[i * step_g];
        return ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    }

    const ConvShape& s_;
    float *image_, *filters_, *output_;
    const float* bias_;
    std::array<std::vector<Taps>, 2> taps_;
};

}  // namespace

void convolve(Pool& pool, const ConvShape& shape, const ConvData& data) {
    const DirectConvolution convolution(shape, data);
    pool.run(convolution.tasks(), [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t task = first; task < last; ++task) convolution.run(task);
    });
}

}  // namespace bitale
