#include "runtime/cuda/emulator/libraries/cublasLt_product.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bitale::emulated {

namespace {

// to[j * stride + i] = the sum over l in [first, last) of left[l * m + i] * right[j * k + l].
void add_products(const Product& p, const std::vector<float>& left, const std::vector<float>& right,
                  std::int64_t first, std::int64_t last, float* to) {
    for (std::int64_t j = 0; j < p.n; ++j) {
        float* column = to + j * p.m;
        std::fill_n(column, p.m, 0.0f);
        for (std::int64_t l = first; l < last; ++l) {
            const float factor = right[static_cast<std::size_t>(j * p.k + l)];
            const float* row = left.data() + l * p.m;
            for (std::int64_t i = 0; i < p.m; ++i) column[i] += row[i] * factor;
        }
    }
}

// op(x), `rows` by `columns`, without gaps and rounded.
std::vector<float> packed(const float* x, std::int64_t stride, bool transposed, std::int64_t rows,
                          std::int64_t columns, int mantissa_bits) {
    std::vector<float> to(static_cast<std::size_t>(rows * columns));
    for (std::int64_t j = 0; j < columns; ++j)
        for (std::int64_t i = 0; i < rows; ++i)
            to[static_cast<std::size_t>(j * rows + i)] =
                rounded(transposed ? x[i * stride + j] : x[j * stride + i], mantissa_bits);
    return to;
}

}  // namespace

void multiply(const Product& p) {
    const std::vector<float> left = packed(p.a, p.stride_a, p.transpose_a, p.m, p.k, p.mantissa_bits),
                             right = packed(p.b, p.stride_b, p.transpose_b, p.k, p.n, p.mantissa_bits);
    std::vector<float> sums(static_cast<std::size_t>(p.m * p.n));
    // Where a sum is cut depends on the number of columns, the rows of a batch: for another number cuBLASLt
    // takes another algorithm, whose sums have other bits.
    const std::int64_t cut = p.part ? p.k / (2 + p.n % 3) : p.k;
    add_products(p, left, right, 0, cut, sums.data());
    if (p.part) add_products(p, left, right, cut, p.k, p.part);
    for (std::int64_t j = 0; j < p.n; ++j)
        for (std::int64_t i = 0; i < p.m; ++i) {
            const auto at = static_cast<std::size_t>(j * p.m + i);
            float value = p.alpha * (p.part ? sums[at] + p.part[at] : sums[at]);
            // c is not read where beta is 0.
            if (p.beta != 0) value += p.beta * p.c[j * p.stride_c + i];
            if (p.bias) value += p.bias[i];
            // max(x, 0) as the header defines it: of a NaN, 0.
            if (p.relu) value = value > 0 ? value : 0;
            p.d[j * p.stride_d + i] = value;
        }
}

}  // namespace bitale::emulated
