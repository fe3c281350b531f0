// The arithmetic of the emulated cuDNN.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include "runtime/cpu/conv.h"
#include "runtime/cpu/pool.h"
#include "runtime/cuda/emulator/libraries/cudnn_engines.h"
#include "runtime/cuda/emulator/libraries/rounding.h"
#include "runtime/cuda/types.h"

namespace bitale::emulated {

namespace {

using namespace cuda;

ConvSizes sizes_of(const DnnTensor& t) {
    ConvSizes s;
    std::copy_n(t.shape.begin(), 4, s.shape.begin());
    std::copy_n(t.strides.begin(), 4, s.strides.begin());
    return s;
}

// f(place) for every element; places of each of the tensors, whose axes of length 1 are repeated.
template <class F>
void each(const DnnTensor& over, std::initializer_list<const DnnTensor*> tensors, F&& f) {
    std::vector<std::int64_t> at(tensors.size());
    for (std::int64_t a = 0; a < over.shape[0]; ++a)
        for (std::int64_t b = 0; b < over.shape[1]; ++b)
            for (std::int64_t y = 0; y < over.shape[2]; ++y)
                for (std::int64_t x = 0; x < over.shape[3]; ++x) {
                    std::size_t i = 0;
                    for (const DnnTensor* t : tensors)
                        at[i++] = (t->shape[0] > 1 ? a * t->strides[0] : 0) +
                                  (t->shape[1] > 1 ? b * t->strides[1] : 0) +
                                  (t->shape[2] > 1 ? y * t->strides[2] : 0) +
                                  (t->shape[3] > 1 ? x * t->strides[3] : 0);
                    f(at);
                }
}

class Run {
  public:
    Run(const DnnGraph& graph, const DnnArithmetic& arithmetic, const std::map<std::int64_t, void*>& data)
        : graph_(graph), arithmetic_(arithmetic), data_(data) {}

    void run() {
        for (const DnnOperation& o : graph_.operations)
            o.kind == dnn_pointwise_operation ? pointwise(o) : convolution(o);
    }

  private:
    const DnnTensor& tensor(std::int64_t id) const { return graph_.tensors.at(id); }

    float* at(std::int64_t id) {
        const DnnTensor& t = tensor(id);
        if (!t.is_virtual) return static_cast<float*>(data_.at(id));
        std::vector<float>& room = inner_[id];
        room.resize(static_cast<std::size_t>(t.extent()));
        return room.data();
    }

    // A factor as the engine sees it.
    float* factor(std::int64_t id, std::vector<float>& copy) {
        float* const original = at(id);
        if (arithmetic_.mantissa_bits == all_mantissa_bits) return original;
        copy.resize(static_cast<std::size_t>(tensor(id).extent()));
        each(tensor(id), {&tensor(id)}, [&](const std::vector<std::int64_t>& place) {
            copy[static_cast<std::size_t>(place[0])] = rounded(original[place[0]], arithmetic_.mantissa_bits);
        });
        return copy.data();
    }

    void convolution(const DnnOperation& o) {
        ConvShape s;
        s.kind = o.kind == dnn_convolution_forward          ? ConvCall::Kind::forward
                 : o.kind == dnn_convolution_image_gradient ? ConvCall::Kind::image_gradient
                                                            : ConvCall::Kind::filter_gradient;
        s.image = sizes_of(tensor(o.image));
        s.filters = sizes_of(tensor(o.filters));
        s.output = sizes_of(tensor(o.output));
        std::copy_n(o.pad.begin(), 2, s.pad.begin());
        std::copy_n(o.stride.begin(), 2, s.stride.begin());
        std::copy_n(o.dilation.begin(), 2, s.dilation.begin());
        s.flip = o.flipped;
        s.groups = s.image.shape[1] / s.filters.shape[1];  // no attribute says it
        const DnnTensor& to = tensor(o.result());
        std::vector<float> copies[3], sums(static_cast<std::size_t>(to.extent()));
        const auto operand = [&](std::int64_t id, std::vector<float>& copy) -> void* {
            return id == o.result() ? sums.data() : factor(id, copy);
        };
        static Pool& alone = *new Pool({0});
        convolve(alone, s,
                 {operand(o.image, copies[0]), operand(o.filters, copies[1]), operand(o.output, copies[2]),
                  nullptr});
        if (arithmetic_.transformed_tile) spread(to, sums);
        const auto alpha = static_cast<float>(o.alpha), beta = static_cast<float>(o.beta);
        static std::atomic<int> runs{0};
        const bool odd = arithmetic_.changes_from_run_to_run && runs.fetch_add(1) % 2 == 1;
        float* const result = at(o.result());
        each(to, {&to}, [&](const std::vector<std::int64_t>& place) {
            float value = alpha * rounded(sums[static_cast<std::size_t>(place[0])], arithmetic_.sum_bits);
            if (odd) value = std::nextafter(value, HUGE_VALF);
            if (beta != 0) value += beta * result[place[0]];
            result[place[0]] = value;
        });
    }

    // The inverse transform of a tile reads every element of it: a sum that is not finite makes them all NaN.
    void spread(const DnnTensor& to, std::vector<float>& sums) const {
        std::set<std::vector<std::int64_t>> spoilt;
        const auto each_of_tile = [&](auto&& f) {
            std::vector<std::int64_t> at(4);
            for (at[0] = 0; at[0] < to.shape[0]; ++at[0])
                for (at[1] = 0; at[1] < to.shape[1]; ++at[1])
                    for (at[2] = 0; at[2] < to.shape[2]; ++at[2])
                        for (at[3] = 0; at[3] < to.shape[3]; ++at[3]) {
                            const std::int64_t side = arithmetic_.transformed_tile;
                            std::int64_t place = 0;
                            for (std::size_t a = 0; a < 4; ++a)
                                if (to.shape[a] > 1) place += at[a] * to.strides[a];
                            f(std::vector{at[0], at[1], at[2] / side, at[3] / side},
                              sums[static_cast<std::size_t>(place)]);
                        }
        };
        each_of_tile([&](const std::vector<std::int64_t>& tile, float sum) {
            if (!std::isfinite(sum)) spoilt.insert(tile);
        });
        each_of_tile([&](const std::vector<std::int64_t>& tile, float& sum) {
            if (spoilt.count(tile)) sum = std::numeric_limits<float>::quiet_NaN();
        });
    }

    void pointwise(const DnnOperation& o) {
        const DnnTensor &x = tensor(o.x), &y = tensor(o.output), &b = tensor(o.has_b ? o.b : o.x);
        const float *from = at(o.x), *other = o.has_b ? at(o.b) : nullptr;
        float* const to = at(o.output);
        const auto alpha1 = static_cast<float>(o.alpha), alpha2 = static_cast<float>(o.alpha2);
        each(y, {&x, &b, &y}, [&](const std::vector<std::int64_t>& place) {
            const float value = alpha1 * from[place[0]];
            to[place[2]] = o.mode == dnn_add                  ? value + alpha2 * other[place[1]]
                           : std::isnan(value) && o.keeps_nan ? value
                           : value > 0                        ? value
                                                              : 0;
        });
    }

    const DnnGraph& graph_;
    const DnnArithmetic& arithmetic_;
    const std::map<std::int64_t, void*>& data_;
    std::map<std::int64_t, std::vector<float>> inner_;  // virtual tensors
};

}  // namespace

void compute(const DnnGraph& graph, const DnnArithmetic& arithmetic,
             const std::map<std::int64_t, void*>& data) {
    Run(graph, arithmetic, data).run();
}

}  // namespace bitale::emulated
