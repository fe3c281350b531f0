#include "runtime/cuda/library_bounds.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "graph/base/options.h"
#include "runtime/cpu/conv.h"
#include "runtime/cpu/pool.h"

namespace bitale::cuda {

namespace {

constexpr double unit_roundoff = 0x1p-24;

// Of both factors of a product, rounded or cut to so many bits.
double of_operands(Precision precision) {
    switch (precision) {
        case Precision::float32: return 0;
        case Precision::tf32: return 0x1p-9;
        case Precision::bf16: return 0x1p-7;
    }
    return 0;
}

// Of a sum of so many products, a bias and the result's own rounding, for magnitudes that add up to 1.
double relative_bound(std::int64_t terms, Precision precision) {
    return static_cast<double>(terms + 2) * unit_roundoff + of_operands(precision);
}

std::int64_t terms_of(const ConvShape& s) {
    const auto& [n, k, height, width] = s.output.shape;
    const std::int64_t places = s.filters.shape[2] * s.filters.shape[3];
    switch (s.kind) {
        case ConvCall::Kind::forward: return s.filters.shape[1] * places;
        case ConvCall::Kind::image_gradient: return k / s.groups * places;
        case ConvCall::Kind::filter_gradient: return n * height * width;
    }
    return 0;
}

}  // namespace

void multiply_with_bounds(const GemmShape& shape, const float* a, const float* b, const float* bias, float* c,
                          std::vector<double>& bounds) {
    const auto m = static_cast<std::size_t>(shape.m), n = static_cast<std::size_t>(shape.n),
               k = static_cast<std::size_t>(shape.k);
    std::vector<float> rows;  // of b, as [k, n]
    if (shape.transpose_b) {
        rows.resize(k * n);
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t t = 0; t < k; ++t) rows[t * n + j] = b[j * k + t];
        b = rows.data();
    }
    const double relative = relative_bound(shape.k, shape.precision);
    bounds.resize(m * n);
    const auto row = [&](std::size_t i) {
        std::vector<double> sums(n, 0.0), magnitudes(n, 0.0);
        for (std::size_t t = 0; t < k; ++t) {
            const double x = shape.transpose_a ? a[t * m + i] : a[i * k + t];
            for (std::size_t j = 0; j < n; ++j) {
                const double y = x * b[t * n + j];
                sums[j] += y;
                magnitudes[j] += std::fabs(y);
            }
        }
        for (std::size_t j = 0; j < n; ++j) {
            const double more = bias ? bias[j] : 0.0, sum = sums[j] + more;
            c[i * n + j] = static_cast<float>(shape.relu && sum < 0 ? 0.0 : sum);
            bounds[i * n + j] = relative * (magnitudes[j] + std::fabs(more));
        }
    };
    process_pool(options().threads).run(shape.m, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t i = first; i < last; ++i) row(static_cast<std::size_t>(i));
    });
}

void convolve_with_bounds(const ConvShape& shape, const std::vector<Array*>& buffers,
                          std::vector<double>& bounds) {
    // The same loops over magnitudes; the result begins as zeros, since a tensor need not fill its buffer.
    std::vector<std::vector<float>> magnitudes;
    std::array<void*, 4> data{}, positive{};
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        const std::span<const float> values = buffers[i]->view<float>();
        std::vector<float>& copy = magnitudes.emplace_back(values.begin(), values.end());
        for (float& x : copy) x = i == 2 ? 0.0f : std::fabs(x);
    }
    for (std::size_t i = 0; i < buffers.size(); ++i) {
        data.at(i) = buffers[i]->mutable_data();
        positive.at(i) = magnitudes[i].data();
    }
    Pool& pool = process_pool(options().threads);
    convolve(pool, shape, conv_data(shape, data.data()));
    ConvShape sums = shape;
    sums.relu = false;
    convolve(pool, sums, conv_data(sums, positive.data()));
    double largest = 0;
    for (const float x : magnitudes[2])
        if (std::isfinite(x)) largest = std::max(largest, double{x});
    // Twice: these sums are rounded too.
    const double bound = 2 * relative_bound(terms_of(shape), shape.precision) * largest;
    bounds.assign(magnitudes[2].begin(), magnitudes[2].end());
    for (double& b : bounds)
        if (std::isfinite(b)) b = bound;
}

bool is_within(float expected, float got, double bound) {
    if (std::isnan(bound) || std::isnan(expected)) return std::isnan(got);
    return std::isinf(bound) || expected == got || std::fabs(double{expected} - double{got}) <= bound;
}

}  // namespace bitale::cuda
